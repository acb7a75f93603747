// Command gpu checks on a machine with an NVIDIA GPU what can't be checked without one.
// It checks that ptxas and nvcc accept the kernels, that each primitive computes the same
// on the GPU as in the emulator, that the device fulfils its contract and trains Cora as
// the CPU does, what compute-sanitizer finds, and how fast it is compared with PyTorch
// and the bars. It writes a table, and goes on after a failed step.
//
// `make gpu-bundle` makes a folder with everything that it runs. The machine with the GPU
// needs neither Go nor a network. Missing tools (nvcc, compute-sanitizer, PyTorch) are
// listed, and their steps are skipped:
//
//	./gpu -out FOLDER          all steps, in nine minutes at most (-limit)
//	./gpu -list                the steps
//	./gpu -only contract,cora  some steps, and those that they depend on
//	./gpu -tiny                with minimal sizes, for the emulated driver
//
// docs/results/gpu.md is the table of an H200. `make gpu-check` runs everything with the
// emulated driver, whose times mean nothing.
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

// do runs the steps. After each step it writes the table again.
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
	// The graph is large and needed only during the run.
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
	fmt.Println()
	return t.sound(), t.page().Print(os.Stdout)
}

// choose returns the steps with these names and those that they depend on, or all.
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
