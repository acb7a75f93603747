// Command accuracy trains recipes whose accuracy is known, each with several seeds, and
// prints mean, deviation and known accuracy (the bar). It fails if a mean is more than
// half a point below its bar.
//
// Finished runs are kept in a file with the commit they ran on, and are not repeated
// unless their recipe changes.
//
// With -nodes it trains the same recipes by leap, on that many nodes in this process, and
// compares the means with those of one node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// tolerance is how far below its bar a mean may be, in points.
const tolerance = 0.5

var errBelow = errors.New("a mean is more than half a point below its bar")

// options are those of the command.
type options struct {
	runs.Asked
	nodes int // 0: one node alone
	list  []row
}

func main() {
	var t options
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

func all(ctx context.Context, t options) error {
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
	if err := result.Writable(t.Out); err != nil {
		return err
	}
	var failed error
	if !t.Show {
		var todo []runs.Row
		for _, r := range t.list {
			todo = append(todo, r.on(t.nodes))
		}
		failed = k.Finish(ctx, t.Graphs, todo)
	}
	page := &result.Page{Title: "Accuracy", Command: result.Command("go run ./scripts/accuracy")}
	if t.nodes > 0 {
		failed = errors.Join(failed, t.compare(t.list, k, page))
	} else {
		failed = errors.Join(failed, table(t.list, k, page))
	}
	var rows []runs.Row
	for _, r := range t.list {
		rows = append(rows, r.on(0))
		if t.nodes > 0 {
			rows = append(rows, r.on(t.nodes))
		}
	}
	return errors.Join(failed, page.Print(os.Stdout), page.Write(t.Out), k.WriteMeans(t.Means, rows))
}
