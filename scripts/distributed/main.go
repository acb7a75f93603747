// Command distributed trains the same models on the same graphs by hopmesh, by DistDGL, and by DGL
// with DDP and the whole graph on every rank, in the same network namespaces, and prints times,
// bytes, memory and accuracy beside each other. It is for developers; nothing in hopmesh needs it.
//
// It needs root on Linux, bin/hopmesh, and a Python with scripts/peers/requirements.txt, which
// `make bench-distributed` sets up. Finished runs are kept in a file, which is checked in, and are not
// repeated on such a machine; `-again` repeats those of other versions of hopmesh. `-only headline`
// takes about a quarter of an hour. `-plot` draws how the sides scale.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// asked holds the command's flags.
type asked struct {
	python, program, keep, runs, only, models, out, plot string
	repetitions                                          int
	show, loaders, again                                 bool
}

func main() {
	var a asked
	flag.StringVar(&a.python, "python", ".tools/peers/bin/python", "the Python that has PyTorch and DGL")
	flag.StringVar(&a.program, "program", "bin/hopmesh", "the hopmesh to compare")
	flag.StringVar(&a.keep, "keep", ".tools/distributed", "the folder for graphs and partitions")
	flag.StringVar(&a.runs, "runs", "scripts/distributed/runs.jsonl", "the file of finished runs")
	flag.StringVar(&a.only, "only", "all", "parts to run, between commas: "+strings.Join(parts, ", ")+", or all")
	flag.StringVar(&a.models, "models", "all", "models to train, between commas, such as 2x16,3x128")
	flag.IntVar(&a.repetitions, "repetitions", repetitions, "of each cell")
	flag.BoolVar(&a.show, "show", false, "run nothing, print what is there")
	flag.BoolVar(&a.again, "again", false, "measure anew what another version of hopmesh measured")
	flag.BoolVar(&a.loaders, "loaders", false, "compare the loaders of batches instead, by loops that train nothing")
	flag.StringVar(&a.out, "out", "", "write the result into a Markdown file too, with the machine and the date")
	flag.StringVar(&a.plot, "plot", "", "draw how the sides scale into an SVG file")
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
	if a.loaders && a.plot != "" {
		return errors.New("there is no plot of the loaders: leave -plot out")
	}
	if err := plot.Check(a.plot); err != nil {
		return err
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
				return fmt.Errorf("stopped: finished runs are kept in %s, and the same command goes on from there", a.runs)
			}
			return err
		}
	}
	// What was run before belongs on the page, too.
	r := report{cells(), b.kept, b.takes, a.repetitions, a.plot}
	if a.loaders {
		r.cells = list
		made := r.loaderPage()
		return errors.Join(made.Print(os.Stdout), made.Write(a.out))
	}
	made := r.page()
	return errors.Join(r.draw(), made.Print(os.Stdout), made.Write(a.out))
}

// open opens what is kept. Paths are absolute: processes at sites may be in another folder.
func open(a asked) (*lab, error) {
	const script = "scripts/distributed/distributed.py"
	b := &lab{progress: os.Stderr}
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
		return nil, fmt.Errorf("make a folder for graphs and partitions: %w", err)
	}
	var err error
	if !a.show {
		if b.version, err = version(b.program); err != nil {
			return nil, fmt.Errorf("ask the program to compare, which `make build` makes, for its version: %w", err)
		}
	}
	if a.again {
		b.takes.version = b.version
	}
	if b.takes.script, err = digest(b.python.script); err != nil {
		return nil, fmt.Errorf("run this from the repository's root: %w", err)
	}
	if b.kept, err = load(a.runs); err != nil {
		return nil, err
	}
	b.takes.machine = machine()
	if n := len(b.kept.Items); a.show && n > 0 {
		b.takes.machine = b.kept.Items[n-1].Machine // wherever the page is made
	}
	return b, nil
}

// machine describes what decides how long a run takes.
func machine() string {
	m := result.ThisMachine()
	return fmt.Sprintf("%d cores of %s", m.Cores, m.Processor)
}

// version returns a program's.
func version(program string) (string, error) {
	out, err := exec.Command(program, "version", "--json").Output()
	if err != nil {
		return "", err
	}
	var v struct{ Version string }
	return v.Version, json.Unmarshal(out, &v)
}
