// Command peers trains the same models on the same shard files, with the same
// number of threads, as PyG and DGL do on this machine's CPU, and prints our time
// over the fastest of theirs. It is for developers; nothing in hopmesh needs it.
//
// It takes a Python with scripts/peers/requirements.txt, which `make bench-peers`
// makes, and some minutes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

const (
	// rounds is how often each side is timed in turn; medians count.
	rounds = 3
	// limit is how long one of the others may train in a round: it does fewer steps
	// where it is slow.
	limit = 30 * time.Second
)

func main() {
	program := flag.String("python", ".tools/peers/bin/python", "the Python that has PyG and DGL")
	folder := flag.String("graphs", "engine/graph/read/testdata", "the folder of real graphs")
	only := flag.String("only", "", "a part of the name of the graphs to train on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, *program, *folder, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, program, folder, only string) (err error) {
	scratch, err := os.MkdirTemp("", "hopmesh-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	threads := runtime.GOMAXPROCS(0)
	p, err := newPython(ctx, program, "scripts/peers/peers.py", threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	fmt.Printf("training alone, %d threads, medians of %d rounds in turn\n\n", threads, rounds)
	for i, b := range beds(folder) {
		if !strings.Contains(b.name, only) {
			continue
		}
		g, err := b.cut(ctx, filepath.Join(scratch, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if _, err := p.ask(map[string]any{"do": "open", "folder": g.Folder, "row": b.row}); err != nil {
			return errors.Join(fmt.Errorf("open %s in Python: %w", b.name, err), g.Close())
		}
		for _, t := range b.cases {
			if err := compareOne(ctx, p, b, t, g, threads); err != nil {
				return errors.Join(err, g.Close())
			}
		}
		if err := errors.Join(g.Close(), os.RemoveAll(g.Folder)); err != nil {
			return err
		}
	}
	return nil
}

func (b bed) cut(ctx context.Context, folder string) (*graphs.Graph, error) {
	fmt.Fprintf(os.Stderr, "cutting %s\n", b.name)
	switch {
	case b.made.Preset != "":
		return graphs.Generate(ctx, b.made, b.undirected, folder)
	case b.file != "":
		return graphs.Read(ctx, b.file, folder)
	}
	dir, err := os.MkdirTemp("", "hopmesh-cora-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := cora.Write(dir)
	if err != nil {
		return nil, err
	}
	return graphs.Read(ctx, file, folder)
}

// A side is one way to train, and what it took.
type side struct {
	name    string
	train   func() (seconds []float64, test float64, err error) // a step each
	seconds []float64
	test    float64
	err     error
}

func compareOne(ctx context.Context, p *python, b bed, t task, g *graphs.Graph, threads int) error {
	fmt.Fprintf(os.Stderr, "%s: %s hidden %d, load %s\n", b.name, t.model, t.hidden, load())
	sides := []*side{{name: "hopmesh", train: func() ([]float64, float64, error) { return ours(ctx, t, b.row, false, g, threads) }}}
	if t.bf16 {
		sides = append(sides, &side{name: "hopmesh, BF16 products", train: func() ([]float64, float64, error) { return ours(ctx, t, b.row, true, g, threads) }})
	}
	own := len(sides)
	for _, who := range frameworks {
		if who == "pyg-csr" && t.batch > 0 {
			continue // it is for all vertices at once
		}
		s := &side{name: who, err: p.build(who, t)}
		s.train = func() ([]float64, float64, error) { return theirs(p, who, t) }
		sides = append(sides, s)
	}
	for range rounds {
		for _, s := range sides {
			if s.err != nil {
				continue
			}
			var seconds []float64
			seconds, s.test, s.err = s.train()
			s.seconds = append(s.seconds, seconds...)
		}
	}
	report(b, t, sides, own)
	for _, s := range sides[:own] {
		if s.err != nil {
			return fmt.Errorf("train %s with %s: %w", b.name, s.name, s.err)
		}
	}
	return ctx.Err()
}

func report(b bed, t task, sides []*side, own int) {
	fastest := 0.0
	for _, s := range sides[own:] {
		if m := median(s.seconds); s.err == nil && (fastest == 0 || m < fastest) {
			fastest = m
		}
	}
	name := t.name
	if name == "" {
		name = fmt.Sprintf("SAGE %v, batch %d, hidden %d", t.fanouts, t.batch, t.hidden)
	}
	fmt.Printf("%s, %s (load at the end: %s)\n", b.name, name, load())
	for i, s := range sides {
		if s.err != nil {
			fmt.Printf("  %-24s %s\n", s.name, s.err)
			continue
		}
		line := fmt.Sprintf("  %-24s %9.2f ms a step", s.name, median(s.seconds)*1e3)
		if t.score {
			line += fmt.Sprintf(", test accuracy %.3f", s.test)
		}
		bar := t.bar
		if i == 1 && own == 2 {
			bar = t.bar16
		}
		if i < own && fastest > 0 {
			ratio := median(s.seconds) / fastest
			verdict := "holds"
			if ratio > bar {
				verdict = "FALLS SHORT"
			}
			line += fmt.Sprintf(", %.2fx of the fastest other (at most %.2fx: %s)", ratio, bar, verdict)
		}
		fmt.Println(line)
	}
	fmt.Println()
}

// theirs returns the seconds of each step.
func theirs(p *python, who string, t task) ([]float64, float64, error) {
	steps := 0
	if t.batch > 0 {
		steps = t.steps
	}
	a, err := p.ask(map[string]any{"do": "train", "who": who, "epochs": t.epochs, "steps": steps, "limit": limit.Seconds()})
	if err != nil {
		return nil, 0, err
	}
	for i := range a.Seconds {
		a.Seconds[i] /= float64(a.Steps[i])
	}
	if !t.score {
		return a.Seconds, 0, nil
	}
	score, err := p.ask(map[string]any{"do": "score", "who": who})
	return a.Seconds, score.Test, err
}

// ours trains anew from the start each time.
func ours(ctx context.Context, t task, row, bf16 bool, g *graphs.Graph, threads int) ([]float64, float64, error) {
	var seconds []float64
	epochs := t.epochs
	if t.batch == 0 {
		epochs *= rounds // as many as the others have done by their last round
	}
	result, err := train.Run(ctx, t.recipe(row, bf16, epochs), g.Shards, train.Options{
		Threads: threads, Report: func(e train.Epoch) { seconds = append(seconds, e.Seconds/float64(e.Steps)) },
	})
	if err != nil {
		return nil, 0, err
	}
	test := 0.0
	if result.Last.Eval != nil {
		test = result.Last.Eval.Test.Accuracy
	}
	return seconds, test, nil
}

// load is how many threads want a core, over the last minute. Others that want one
// slow down all sides, but OpenMP, which waits for its slowest thread, the most:
// only a quiet machine's ratios count.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(said), " ")
	return one
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.SortedFunc(slices.Values(list), cmp.Compare[float64])
	return s[len(s)/2]
}
