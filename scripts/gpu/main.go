// Command gpu does, on a machine with an NVIDIA GPU, all that cannot be known without
// one: whether ptxas and nvcc take the kernels, whether each primitive means on a GPU
// what its twin does in the emulator, whether the device passes its contract and trains
// Cora as the processor does, what compute-sanitizer finds, and how fast it all is,
// beside PyTorch and the bars. It writes a table and goes on after what fails.
//
// `make gpu-bundle` makes a folder with all that it runs; that machine needs neither Go
// nor a network. What else is missing there (nvcc, compute-sanitizer, PyTorch) is said,
// and its steps are left out:
//
//	./gpu -out FOLDER          all of it, in nine minutes at most (-limit)
//	./gpu -list                the steps
//	./gpu -only contract,cora  some steps, and what they come after
//	./gpu -tiny                as small as can be, for the emulated driver
//
// NOTHING OF THIS HAS RUN ON A GPU YET, and neither nvcc nor compute-sanitizer has seen
// any of it. `make gpu-check` runs the whole with the emulated driver, whose times mean
// nothing; theirs.py has run on the processor only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	out := flag.String("out", "", "the folder for the table and the logs (default $OUT, or out)")
	only := flag.String("only", "", "names of steps, with commas between")
	list := flag.Bool("list", false, "print the steps")
	tiny := flag.Bool("tiny", false, "everything as small as can be")
	total := flag.Duration("limit", 9*time.Minute, "how long all of it may take")
	flag.Parse()
	if *list {
		for _, s := range steps {
			fmt.Printf("%-12s %4.0f s  %s\n", s.name, s.limit.Seconds(), s.what)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *total)
	defer cancel()
	ok, err := do(ctx, orElse(*out, os.Getenv("OUT"), "out"), *only, *tiny)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func orElse(words ...string) string {
	return words[slices.IndexFunc(words, func(w string) bool { return w != "" })]
}

// do runs the steps and writes the table, anew after each of them.
func do(ctx context.Context, out, only string, tiny bool) (ok bool, err error) {
	chosen, err := choose(only)
	if err != nil {
		return false, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return false, err
	}
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	// The graph is large and nobody wants it back.
	scratch, err := os.MkdirTemp("", "hopmesh-gpu-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	r := &runner{bundle: filepath.Dir(program), out: out, scratch: scratch, tiny: tiny}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return false, err
	}
	t := &table{}
	for _, s := range chosen {
		if s.beside {
			r.begin(ctx, s)
		}
	}
	for _, s := range chosen {
		fmt.Printf("%-12s %s\n", s.name, s.what)
		done := r.run(ctx, s)
		t.add(done)
		fmt.Printf("             %s\n", done)
		if err := t.write(out); err != nil {
			return false, err
		}
	}
	fmt.Printf("\n%s", t.text())
	return t.sound(), nil
}

// choose is the steps of these names, with those that they come after, or all.
func choose(only string) ([]step, error) {
	if only == "" {
		return steps, nil
	}
	names := strings.Split(only, ",")
	for i := 0; i < len(names); i++ {
		at := slices.IndexFunc(steps, func(s step) bool { return s.name == names[i] })
		if at < 0 {
			return nil, fmt.Errorf("there is no step %q: -list prints those there are", names[i])
		}
		if after := steps[at].after; after != "" {
			names = append(names, after)
		}
	}
	var chosen []step
	for _, s := range steps {
		if slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}
