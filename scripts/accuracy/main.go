// Command accuracy trains the recipes that accuracy is judged by, each with several
// seeds, and prints mean, deviation and bar. It fails if a mean is more than half a
// point below its bar.
//
// Finished runs are kept in a file with the commit they ran on; it goes on where it
// stopped. A recipe that changes is run anew.
//
// With -nodes it trains the same by leap, shared by so many nodes in this process, and
// puts the means beside those of one node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopmesh/hopmesh/scripts/graphs"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// tolerance is how far below its bar a mean may be, in points.
const tolerance = 0.5

var errBelow = errors.New("a mean is more than half a point below its bar")

// A task is what was asked for.
type task struct {
	folder string // of graphs
	nodes  int    // 0: one that does it all
	list   []row
}

func main() {
	folder := flag.String("graphs", "engine/graph/read/testdata", "the folder of graphs; cora's is engine/graph/cora")
	file := flag.String("kept", "scripts/accuracy/runs.jsonl", "the file of finished runs")
	only := flag.String("rows", "", "parts of the names of the rows to run, between commas")
	show := flag.Bool("show", false, "run nothing, print what is there")
	nodes := flag.Int("nodes", 0, "share each run by leap among so many nodes, and compare with one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := all(ctx, task{folder: *folder, nodes: *nodes}, *file, *only, *show); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, t task, file, only string, show bool) error {
	k, err := runs.Load(file)
	if err != nil {
		return err
	}
	if t.nodes < 0 || t.nodes == 1 || t.nodes > 8 {
		return fmt.Errorf("-nodes %d: a run is shared by 2 to 8 nodes", t.nodes)
	}
	for _, r := range rows() {
		if only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(r.id(), part) }) {
			t.list = append(t.list, r)
		}
	}
	if len(t.list) == 0 {
		return fmt.Errorf("no row has %q in its name", only)
	}
	tell := table
	if t.nodes > 0 {
		tell = t.compare
	}
	if !show {
		if err := t.finish(ctx, k); err != nil {
			return errors.Join(err, tell(t.list, k))
		}
	}
	return tell(t.list, k)
}

// finish does the runs that are not kept yet.
func (t task) finish(ctx context.Context, k *runs.Kept) (err error) {
	commit, err := runs.Commit()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hopmesh-accuracy-")
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
	for _, r := range t.list {
		id, err := runs.Digest(r.Recipe)
		if err != nil {
			return err
		}
		done := k.Of(r.id(), id, t.nodes)
		for seed := range uint64(r.seeds) {
			if _, ok := done[seed]; ok {
				continue
			}
			g := open[r.graph]
			if g == nil {
				if g, err = graphs.Read(ctx, source(t.folder, r.graph), filepath.Join(scratch, r.graph)); err != nil {
					return err
				}
				open[r.graph] = g
			}
			r.Seed = seed
			begun := time.Now()
			result, err := share(ctx, r.Recipe, g.Shards, max(1, t.nodes))
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", r.id(), seed, err)
			}
			best := result.Best
			one := runs.Run{
				Row: r.id(), Recipe: id, Seed: seed, Nodes: t.nodes, Commit: commit, Epoch: best.Epoch, Val: 100 * best.Eval.Val.Accuracy,
				Test: 100 * best.Eval.Test.Accuracy, Seconds: time.Since(begun).Seconds(),
			}
			fmt.Fprintf(os.Stderr, "%s, seed %d: %.2f (epoch %d, %.0f s)\n", one.Row, seed, one.Test, one.Epoch, one.Seconds)
			if err := k.Add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func source(folder, graph string) string {
	if graph == "cora" {
		return "engine/graph/cora/cora.npz"
	}
	return filepath.Join(folder, graph+".npz")
}

func table(list []row, k *runs.Kept) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "GRAPH\tMODEL\tRECIPE\tSEEDS\tTEST ACCURACY\tBAR\t\tCOMMIT")
	var below error
	for _, r := range list {
		id, err := runs.Digest(r.Recipe)
		if err != nil {
			return err
		}
		var tests []float64
		var commits []string
		done := k.Of(r.id(), id, 0)
		for seed := range uint64(r.seeds) {
			if one, ok := done[seed]; ok {
				tests = append(tests, one.Test)
				commits = append(commits, one.Commit)
			}
		}
		slices.Sort(commits)
		commits = slices.Compact(commits)
		mean, deviation := runs.Spread(tests)
		said, bar, verdict := "not run", "", ""
		if len(tests) > 0 {
			said = fmt.Sprintf("%.2f ± %.2f", mean, deviation)
		}
		if r.bar > 0 {
			bar = fmt.Sprintf("%.1f", r.bar)
			switch {
			case len(tests) < r.seeds:
				verdict = "not all seeds"
			case mean >= r.bar:
				verdict = "holds"
			case mean >= r.bar-tolerance:
				verdict = "within tolerance"
			default:
				verdict, below = "BELOW", errBelow
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", r.graph, r.name, describe(r.Recipe), len(tests), r.seeds, said, bar, verdict, strings.Join(commits, " "))
	}
	return errors.Join(below, w.Flush())
}
