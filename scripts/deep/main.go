// Command deep trains deep models by pipe beside graph, which has the gradient of one
// machine: GCNII and ResGCN+ on three graphs, a GCN that is too deep to learn well, and
// one model without each of the techniques that pipe makes up for old rows with. It
// prints means and deviations of several seeds, and how far each is from graph's.
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

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	cut "github.com/hopmesh/hopmesh/scripts/graphs"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A task is what was asked for.
type task struct {
	folder string // of graphs
	file   string // of finished runs
	only   string
	seeds  int
	epochs int // 0: as the recipes say
	show   bool
}

func main() {
	var t task
	flag.StringVar(&t.folder, "graphs", "engine/graph/read/testdata", "the folder of graphs, beside which is that of cora")
	flag.StringVar(&t.file, "kept", "scripts/deep/runs.jsonl", "the file of finished runs")
	flag.StringVar(&t.only, "rows", "", "parts of the names of the rows to run, between commas")
	flag.IntVar(&t.seeds, "seeds", 3, "of each row")
	flag.IntVar(&t.epochs, "epochs", 0, "of each run, to try it; 0: as its recipe says")
	flag.BoolVar(&t.show, "show", false, "run nothing, print what is there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := all(ctx, t, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, t task, to io.Writer) error {
	k, err := runs.Load(t.file)
	if err != nil {
		return err
	}
	if t.seeds < 1 || t.epochs < 0 {
		return fmt.Errorf("-seeds %d -epochs %d: a mean is of one seed at least, and of epochs from 0 on", t.seeds, t.epochs)
	}
	var list []row
	for _, s := range subjects() {
		if t.epochs > 0 {
			s.recipe.Epochs = t.epochs
		}
		for _, w := range ways[s.table] {
			r := row{s, w}
			if t.only == "" || slices.ContainsFunc(strings.Split(t.only, ","), func(part string) bool { return strings.Contains(r.id(), part) }) {
				list = append(list, r)
			}
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no row has %q in its name", t.only)
	}
	if t.show {
		return t.table(list, k, to)
	}
	return errors.Join(t.finish(ctx, list, k), t.table(list, k, to))
}

// finish does the runs that are not kept yet.
func (t task) finish(ctx context.Context, list []row, k *runs.Kept) (err error) {
	scratch, err := os.MkdirTemp("", "hopmesh-deep-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	open := map[string]*cut.Graph{}
	defer func() {
		for _, g := range open {
			err = errors.Join(err, g.Close())
		}
	}()
	for len(list) > 0 { // all rows of a subject, then the next
		var rows []runs.Row
		of := list[0].subject
		for ; len(list) > 0 && list[0].table == of.table && list[0].subject.id() == of.id(); list = list[1:] {
			rows = append(rows, runs.Row{Name: list[0].id(), Recipe: list[0].whole(), Train: func(ctx context.Context, r train.Recipe) (train.Result, error) {
				g, err := t.open(ctx, of.graph, scratch, open)
				if err != nil {
					return train.Result{}, err
				}
				return train.Run(ctx, r, g.Shards, train.Options{Strategies: []strategy.Strategy{pipe.Pipe, pipe.Graph}})
			}})
		}
		if err := k.Finish(ctx, rows, t.seeds, os.Stderr); err != nil {
			return err
		}
	}
	return nil
}

// open cuts a graph, if that was not done before.
func (t task) open(ctx context.Context, graph, scratch string, open map[string]*cut.Graph) (*cut.Graph, error) {
	if g := open[graph]; g != nil {
		return g, nil
	}
	file := filepath.Join(t.folder, graph+".npz")
	if graph == "cora" {
		file = filepath.Join(t.folder, "../../cora/cora.npz")
	}
	g, err := cut.ReadCut(ctx, file, build.Options{Dir: filepath.Join(scratch, graph), Shards: chunks, Partitioner: "multilevel"})
	if err != nil {
		return nil, err
	}
	open[graph] = g
	return g, nil
}
