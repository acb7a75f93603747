// Command distributed trains the same models on the same graph by hopmesh, by DistDGL, and by DGL
// with DDP and the whole graph on every rank, in the same network namespaces, and prints times,
// bytes, memory and accuracy beside each other. It is for developers; nothing in hopmesh needs it.
//
// It needs root on Linux, bin/hopmesh, and a Python with scripts/peers/requirements.txt, which
// `make bench-distributed` sets up. Finished runs are kept in a folder and are not repeated, unless
// the program that trained has changed. `-only headline` takes about a quarter of an hour.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hopmesh/hopmesh/node/bench/result"
)

// asked holds the command's flags.
type asked struct {
	python, program, keep, only, models, out string
	repetitions                              int
	show, loaders                            bool
}

func main() {
	var a asked
	flag.StringVar(&a.python, "python", ".tools/peers/bin/python", "the Python that has PyTorch and DGL")
	flag.StringVar(&a.program, "program", "bin/hopmesh", "the hopmesh to compare")
	flag.StringVar(&a.keep, "keep", ".tools/distributed", "the folder for finished runs, graphs and partitions")
	flag.StringVar(&a.only, "only", "all", "parts to run, between commas: "+strings.Join(parts, ", ")+", or all")
	flag.StringVar(&a.models, "models", "all", "models to train, between commas, such as 2x16,3x128")
	flag.IntVar(&a.repetitions, "repetitions", repetitions, "of each cell")
	flag.BoolVar(&a.show, "show", false, "run nothing, print what is there")
	flag.BoolVar(&a.loaders, "loaders", false, "compare the loaders of batches instead, by loops that train nothing")
	flag.StringVar(&a.out, "out", "", "write the result into a Markdown file too, with the machine and the date")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, a); err != nil {
		fmt.Fprintln(os.Stderr, "distributed:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, a asked) error {
	if flag.NArg() > 0 || a.repetitions < 1 {
		return errors.New("there is nothing to be done with these arguments: see -help")
	}
	list, err := pick(cells(), a.only, a.models)
	if err != nil {
		return err
	}
	if a.loaders {
		list = loaderCells()
	}
	if err := result.Writable(a.out); err != nil {
		return err
	}
	b, err := open(a)
	if err != nil {
		return err
	}
	if !a.show {
		if err := b.python.check(ctx); err != nil {
			return err
		}
		if err := b.finish(ctx, list, a.repetitions); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("stopped: finished runs are kept in %s, and the same command goes on from there", b.folder)
			}
			return err
		}
	}
	// What was run before belongs on the page, too.
	page := report{cells(), b.kept, b.programs, a.repetitions}.page
	if a.loaders {
		page = report{list, b.kept, b.programs, a.repetitions}.loaderPage
	}
	made := page()
	return errors.Join(made.Print(os.Stdout), made.Write(a.out))
}

// open opens the folder of what is kept. Paths are absolute: processes at sites may be in another
// folder.
func open(a asked) (*lab, error) {
	const script = "scripts/distributed/distributed.py"
	b := &lab{progress: os.Stderr, version: commit()}
	for _, p := range []struct {
		to   *string
		from string
	}{{&b.python.program, a.python}, {&b.python.script, script}, {&b.program, a.program}, {&b.folder, a.keep}} {
		path, err := filepath.Abs(p.from)
		if err != nil {
			return nil, err
		}
		*p.to = path
	}
	if err := os.MkdirAll(b.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for what is kept: %w", err)
	}
	var err error
	if b.programs.ours, err = digest(b.program); err != nil {
		return nil, fmt.Errorf("read the program to compare, which `make build` makes: %w", err)
	}
	if b.programs.theirs, err = digest(b.python.script); err != nil {
		return nil, fmt.Errorf("run this from the repository's root: %w", err)
	}
	b.kept, err = load(filepath.Join(b.folder, "runs.jsonl"))
	return b, err
}

// commit names the working tree, or is "unknown".
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
