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
	"strings"
	"text/tabwriter"

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// tolerance is how far below its bar a mean may be, in points.
const tolerance = 0.5

var errBelow = errors.New("a mean is more than half a point below its bar")

// A task is what was asked for.
type task struct {
	runs.Asked
	nodes int // 0: one that does it all
	list  []row
}

func main() {
	var t task
	t.Flags("scripts/accuracy/runs.jsonl")
	flag.IntVar(&t.nodes, "nodes", 0, "share each run by leap among so many nodes, and compare with one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := all(ctx, t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, t task) error {
	k, err := runs.Load(t.Kept)
	if err != nil {
		return err
	}
	if t.nodes < 0 || t.nodes == 1 || t.nodes > 8 {
		return fmt.Errorf("-nodes %d: a run is shared by 2 to 8 nodes", t.nodes)
	}
	if t.list, err = runs.Select(rows(), t.Rows, row.id); err != nil {
		return err
	}
	tell := table
	if t.nodes > 0 {
		tell = t.compare
	}
	if t.Show {
		return tell(t.list, k)
	}
	var todo []runs.Row
	for _, r := range t.list {
		todo = append(todo, r.on(t.nodes))
	}
	return errors.Join(k.Finish(ctx, t.Graphs, todo), tell(t.list, k))
}

func table(list []row, k *runs.Kept) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "GRAPH\tMODEL\tRECIPE\tSEEDS\tTEST ACCURACY\tBAR\t\tCOMMIT")
	var below error
	for _, r := range list {
		m, err := k.Of(r.on(0))
		if err != nil {
			return err
		}
		said, bar, verdict := "not run", "", ""
		if m.Done > 0 {
			said = fmt.Sprintf("%.2f ± %.2f", m.Test, m.Deviation)
		}
		if r.bar > 0 {
			bar = fmt.Sprintf("%.1f", r.bar)
			switch {
			case m.Done < r.seeds:
				verdict = "not all seeds"
			case m.Test >= r.bar:
				verdict = "holds"
			case m.Test >= r.bar-tolerance:
				verdict = "within tolerance"
			default:
				verdict, below = "BELOW", errBelow
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", r.graph, r.name, describe(r.Recipe), m.Done, r.seeds, said, bar, verdict, strings.Join(m.Commits, " "))
	}
	return errors.Join(below, w.Flush())
}
