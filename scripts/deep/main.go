// Command deep trains deep models by pipe beside graph, which has the gradient of one
// machine: GCNII and ResGCN+ on three graphs, a GCN that is too deep to learn well, and
// one model without each of the techniques that pipe makes up for old rows with. It
// prints means and deviations of several seeds, and how far each is from graph's.
//
// Finished runs are kept in a file with the commit they ran on; it goes on where it
// stopped. A recipe that changes is run anew.
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

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A task is what was asked for.
type task struct {
	runs.Asked
	seeds  int // 0: as many as the row has
	epochs int // 0: as the recipes say
}

func main() {
	var t task
	t.Flags("scripts/deep/runs.jsonl")
	flag.IntVar(&t.seeds, "seeds", 0, "of each row; 0: as many as it has")
	flag.IntVar(&t.epochs, "epochs", 0, "of each run, to try it; 0: as its recipe says")
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
	if t.Show {
		return t.table(list, k, to)
	}
	return errors.Join(k.Finish(ctx, t.Graphs, t.todo(list)), t.table(list, k, to))
}

// todo is the rows as they are trained: those of a subject side by side, the first seed of
// each first.
func (t task) todo(list []row) (todo []runs.Row) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].subject.id() == list[0].subject.id() {
			n++
		}
		for seeds := range cmp.Or(t.seeds, list[0].seeds) {
			for _, r := range list[:n] {
				todo = append(todo, r.run(seeds+1))
			}
		}
		list = list[n:]
	}
	return todo
}
