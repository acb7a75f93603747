// Command ablation trains groups that see little or much of a graph, sweep it or not,
// and make up for the rest in several ways, beside one machine that sees all; each with
// several seeds. It prints means and deviations, and draws them.
//
// Finished runs are kept in a file with the commit they ran on; it goes on where it
// stopped. A recipe that changes is run anew.
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
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/scripts/graphs"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A task is what was asked for.
type task struct {
	folder string // of graphs
	file   string // of finished runs
	plot   string // "": none is drawn
	only   string
	seeds  int // 0: as many as the graph has
	epochs int // 0: as the recipes say
	show   bool
}

func main() {
	var t task
	flag.StringVar(&t.folder, "graphs", "engine/graph/read/testdata", "the folder of graphs, beside which is that of cora")
	flag.StringVar(&t.file, "kept", "scripts/ablation/runs.jsonl", "the file of finished runs")
	flag.StringVar(&t.plot, "plot", "", "draw the means into an SVG file")
	flag.StringVar(&t.only, "rows", "", "parts of the names of the rows to run, between commas")
	flag.BoolVar(&t.show, "show", false, "run nothing, print what is there")
	quick := flag.Bool("quick", false, "Cora only, two seeds of 20 epochs, in a minute or so; nothing is kept")
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

// briefly is all in short.
func briefly(ctx context.Context, t task, to io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "hopmesh-ablation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	t.file, t.seeds, t.epochs = filepath.Join(folder, "runs.jsonl"), 2, 20
	if t.only == "" {
		t.only = "cora/"
	}
	return all(ctx, t, to)
}

func all(ctx context.Context, t task, to io.Writer) error {
	k, err := runs.Load(t.file)
	if err != nil {
		return err
	}
	var list []row
	for _, r := range rows() {
		if t.seeds > 0 {
			r.seeds = t.seeds
		}
		r.epochs = t.epochs
		if t.only == "" || slices.ContainsFunc(strings.Split(t.only, ","), func(part string) bool { return strings.Contains(r.id(), part) }) {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no row has %q in its name", t.only)
	}
	if !t.show {
		if err := t.finish(ctx, list, k); err != nil {
			return errors.Join(err, t.tell(list, k, to))
		}
	}
	return t.tell(list, k, to)
}

// tell prints what there is, and draws it.
func (t task) tell(list []row, k *runs.Kept, to io.Writer) error {
	found, err := t.found(list, k)
	if err != nil {
		return err
	}
	if err := table(found, to); err != nil || t.plot == "" {
		return err
	}
	if err := os.WriteFile(t.plot, drawn(found), 0o644); err != nil { //nolint:gosec // a picture to be shown
		return fmt.Errorf("draw the means: %w", err)
	}
	return nil
}

// finish does the runs that are not kept yet.
func (t task) finish(ctx context.Context, list []row, k *runs.Kept) (err error) {
	commit, err := runs.Commit()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hopmesh-ablation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	open := map[string]*graphs.Graph{}
	defer func() {
		for _, g := range open {
			err = errors.Join(err, g.Close())
		}
	}()
	for _, r := range list {
		id, err := runs.Digest(r.whole())
		if err != nil {
			return err
		}
		done := k.Of(r.id(), id, r.nodes)
		for seed := range uint64(r.seeds) {
			if _, ok := done[seed]; ok {
				continue
			}
			g, err := t.open(ctx, r, scratch, open)
			if err != nil {
				return err
			}
			recipe := r.whole()
			recipe.Seed = seed
			begun := time.Now()
			result, err := share(ctx, recipe, g.Shards, max(1, r.nodes))
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", r.id(), seed, err)
			}
			best := result.Best
			one := runs.Run{
				Row: r.id(), Recipe: id, Seed: seed, Nodes: r.nodes, Commit: commit, Epoch: best.Epoch, Val: 100 * best.Eval.Val.Accuracy,
				Test: 100 * best.Eval.Test.Accuracy, Seconds: time.Since(begun).Seconds(), Seen: result.Last.Seen, Hash: result.Last.Hash,
			}
			fmt.Fprintf(os.Stderr, "%s, seed %d: %.2f (epoch %d, %.0f s)\n", one.Row, seed, one.Test, one.Epoch, one.Seconds)
			if err := k.Add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// open cuts a row's graph, if that was not done before.
func (t task) open(ctx context.Context, r row, scratch string, open map[string]*graphs.Graph) (*graphs.Graph, error) {
	o, file := build.Options{Shards: shards, Partitioner: "multilevel"}, filepath.Join(t.folder, r.graph+".npz")
	if r.random {
		o.Partitioner = "random"
	}
	if r.graph == "cora" {
		file = filepath.Join(t.folder, "../../cora/cora.npz")
	}
	name := r.graph + "-" + o.Partitioner
	if open[name] == nil {
		o.Dir = filepath.Join(scratch, name)
		g, err := graphs.ReadCut(ctx, file, o)
		if err != nil {
			return nil, err
		}
		open[name] = g
	}
	return open[name], nil
}
