// Command deep compares deep models trained by pipe with those trained by graph, which
// has the gradient of one machine. It trains GCNII and ResGCN+ on three graphs, a GCN
// that is too deep to learn well, and one model without each of the techniques by which
// pipe corrects for stale rows. It prints means and deviations of several seeds, and
// their differences from graph's.
//
// Finished runs are kept in a file with the commit they ran on, and are not repeated
// unless their recipe changes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// task holds the command's options.
type task struct {
	runs.Asked
	seeds  int // 0: as the protocol says
	epochs int // 0: as the protocol says
}

func main() {
	var t task
	t.Flags("scripts/deep/runs.jsonl")
	flag.IntVar(&t.seeds, "seeds", 0, "of each row; 0: as the protocol says")
	flag.IntVar(&t.epochs, "epochs", 0, "of each run, to try it; 0: as the protocol says")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := all(ctx, t, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, t task, to io.Writer) error {
	k, err := runs.Load(t.Kept)
	if err != nil {
		return err
	}
	if t.seeds < 0 || t.epochs < 0 {
		return fmt.Errorf("-seeds %d -epochs %d: neither is below 0", t.seeds, t.epochs)
	}
	list, err := runs.Select(rows(t.epochs), t.Rows, row.id)
	if err != nil {
		return err
	}
	if err := result.Writable(t.Out); err != nil {
		return err
	}
	var failed error
	if !t.Show {
		failed = k.Finish(ctx, t.Graphs, t.todo(list))
	}
	page := &result.Page{Title: "Deep models", Command: result.Command("go run ./scripts/deep")}
	failed = errors.Join(failed, t.table(list, k, page))
	var rows []runs.Row
	for _, r := range list {
		rows = append(rows, r.run(t.seeds))
	}
	return errors.Join(failed, page.Print(to), page.Write(t.Out), k.WriteMeans(t.Means, rows))
}

// todo returns the rows in the order in which they are trained: the rows of a subject
// together, and the first seed of each first.
func (t task) todo(list []row) (todo []runs.Row) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].subject.id() == list[0].subject.id() {
			n++
		}
		for seeds := range cmp.Or(t.seeds, runs.Seeds) {
			for _, r := range list[:n] {
				todo = append(todo, r.run(seeds+1))
			}
		}
		list = list[n:]
	}
	return todo
}

// bar is how much a mean may differ from graph's, in points.
const bar = 1.0

// table adds a line for each row to a page, with its difference from graph's mean.
func (t task) table(list []row, k *runs.Kept, p *result.Page) error {
	table := result.Table{Head: []string{"Table", "Graph", "Model", "By", "Seeds", "Test accuracy", "Beside graph", "", "Commit"}}
	exactly := map[string]runs.Mean{} // of graph, by subject
	for _, r := range list {
		run := r.run(t.seeds)
		m, err := k.Of(run)
		if err != nil {
			return err
		}
		mean, apart, verdict, of := "not run", "", "", r.table+r.subject.id()
		if m.Done > 0 {
			mean = m.Text(m.Done) // a column says how many are missing
			if r.name == exact.name {
				exactly[of] = m
			} else if one, ok := exactly[of]; ok {
				apart = fmt.Sprintf("%+.2f", m.Test-one.Test)
				verdict = verdictOf(r, m.Test-one.Test, m.Done == run.Seeds)
				if runs.Noise(&m, &one) {
					apart += ", noise"
				}
			}
		}
		table.Add(r.table, r.title, r.model, r.name, fmt.Sprintf("%d of %d", m.Done, run.Seeds), mean, apart, verdict, strings.Join(m.Commits, " "))
	}
	p.Table(table)
	return nil
}

// verdictOf returns in words whether a mean is within the bar, or "" if that is unknown.
func verdictOf(r row, apart float64, whole bool) string {
	switch {
	case r.table != beside:
		return ""
	case !whole:
		return "not all seeds"
	case apart < -bar:
		return "BELOW"
	}
	return "holds"
}
