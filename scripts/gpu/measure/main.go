//go:build cuda

// Command measure times operations on an NVIDIA GPU for scripts/gpu, which compares its
// figures with PyTorch's and the bars. A figure is a line with the word figure, name,
// value and unit, separated by tabs; theirs.py prints the same format.
//
// It is built beforehand, as the machine with the GPU may have no Go. With -tiny, the
// sizes are small enough for the emulated driver, whose times mean nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

const usage = "usage: measure [-tiny] kernels | graph FOLDER | train FOLDER | blocks FOLDER FILE"

func main() {
	tiny := flag.Bool("tiny", false, "everything as small as can be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	size := whole
	if *tiny {
		size = least
	}
	var err error
	switch a := flag.Args(); {
	case len(a) == 1 && a[0] == "kernels":
		err = timeKernels(size)
	case len(a) == 2 && a[0] == "graph":
		err = makeGraph(ctx, size, a[1])
	case len(a) == 2 && a[0] == "train":
		err = timeTraining(ctx, size, a[1])
	case len(a) == 3 && a[0] == "blocks":
		err = timeBlocks(ctx, size, a[1], a[2])
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measure holds the sizes of the operations and how often they are timed.
type measure struct {
	copied           int     // bytes
	vertices, inputs int     // rows in total, and those that a mini-batch reads
	targets, fanout  int     // of the mini-batch's outermost block
	columns          int     // of features
	scale            float64 // relative to ogbn-products
	hidden, batch    int
	fanouts          []int
	epochs, batches  int
	rounds, each     int // rounds whose median counts, and operations per round
}

// whole is a mini-batch of the size of those on ogbn-products, with the width of the
// model that the bars are for.
var whole = measure{
	copied: 1 << 30, vertices: 2_449_029, inputs: 572_000, targets: 139_000, fanout: 5, columns: 100, scale: 1,
	hidden: 256, batch: 1024, fanouts: []int{15, 10, 5}, epochs: 4, batches: 8, rounds: 9, each: 20,
}

var least = measure{
	copied: 1 << 12, vertices: 500, inputs: 100, targets: 30, fanout: 5, columns: 20, scale: 0.0002,
	hidden: 8, batch: 16, fanouts: []int{3, 2, 2}, epochs: 2, batches: 2, rounds: 2, each: 2,
}

// figure prints one number.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure\t%s\t%g\t%s\n", name, value, unit)
}
