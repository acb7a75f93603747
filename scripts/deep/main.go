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
	var rows []runs.Row
	for _, r := range list {
		rows = append(rows, runs.Row{Name: r.id(), Recipe: r.whole(), Train: func(ctx context.Context, recipe train.Recipe) (result train.Result, err error) {
			g := open[r.graph]
			if g == nil {
				file := filepath.Join(t.folder, r.graph+".npz")
				if r.graph == "cora" {
					file = filepath.Join(t.folder, "../../cora/cora.npz")
				}
				if g, err = cut.ReadCut(ctx, file, build.Options{Dir: filepath.Join(scratch, r.graph), Shards: chunks, Partitioner: "multilevel"}); err != nil {
					return result, err
				}
				open[r.graph] = g
			}
			return train.Run(ctx, recipe, g.Shards, train.Options{Strategies: []strategy.Strategy{pipe.Pipe, pipe.Graph}})
		}})
	}
	return k.Finish(ctx, rows, t.seeds, os.Stderr)
}
