// Command ablation compares groups trained in isolation with one machine that sees the
// whole graph, each with several seeds. The first table has several kinds of models,
// shallow and deep, in two and in four groups that have a halo and sweep. The second has
// one model, by groups that see more or less, sweep or not, and correct for the missing
// data in several ways. It prints means and deviations as tables, and plots the second.
//
// Finished runs are kept in a file with the commit they ran on, and are not repeated
// unless their recipe changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// task holds the command's options.
type task struct {
	runs.Asked
	plot   string // "": no plot
	seeds  int    // 0: the graph's number
	epochs int    // 0: the recipes' numbers
}

func main() {
	var t task
	t.Flags("scripts/ablation/runs.jsonl")
	flag.StringVar(&t.plot, "plot", "", "draw the means into an SVG file")
	quick := flag.Bool("quick", false, "one model on Cora only, two seeds of 20 epochs, in a minute or so; nothing is kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := all
	if *quick {
		run = briefly
	}
	if err := run(ctx, t, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// briefly runs everything with small sizes.
func briefly(ctx context.Context, t task, to io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "hopmesh-ablation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	t.Kept, t.seeds, t.epochs = filepath.Join(folder, "runs.jsonl"), 2, 20
	if t.Rows == "" {
		t.Rows = "cora/" + usual.String()
	}
	return all(ctx, t, to)
}

func all(ctx context.Context, t task, to io.Writer) error {
	k, err := runs.Load(t.Kept)
	if err != nil {
		return err
	}
	list, err := runs.Select(rows(), t.Rows, row.id)
	if err != nil {
		return err
	}
	var todo []runs.Row
	for i := range list {
		r := &list[i]
		r.epochs = t.epochs
		if t.seeds > 0 {
			r.seeds = t.seeds
		}
		todo = append(todo, r.run())
	}
	if err := errors.Join(plot.Check(t.plot), result.Writable(t.Out)); err != nil {
		return err
	}
	var failed error
	if !t.Show {
		failed = k.Finish(ctx, t.Graphs, todo)
	}
	return errors.Join(failed, t.print(list, k, to), k.WriteMeans(t.Means, todo))
}

// print prints the results, plots them and writes them.
func (t task) print(list []row, k *runs.Kept, to io.Writer) error {
	found, err := read(list, k)
	if err != nil {
		return err
	}
	page := &result.Page{Title: "Ablation of grappa", Command: result.Command("go run ./scripts/ablation")}
	found.show(page)
	page.Picture(t.plot, "means and deviations of what groups see")
	return errors.Join(page.Body(to), found.chart().Draw(t.plot), page.Write(t.Out))
}
