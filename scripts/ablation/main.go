// Command ablation trains groups in isolation beside one machine that sees all, each with
// several seeds: kinds of models, shallow and deep, in two and in four groups that have a
// halo and are swept; and one model by groups that see little or much, are swept or not,
// and make up for the rest in several ways. It prints means and deviations as tables, and
// draws those of the second.
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

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A task is what was asked for.
type task struct {
	runs.Asked
	plot   string // "": none is drawn
	seeds  int    // 0: as many as the graph has
	epochs int    // 0: as the recipes say
}

func main() {
	var t task
	t.Flags("scripts/ablation/runs.jsonl")
	flag.StringVar(&t.plot, "plot", "", "draw the means into an SVG file")
	quick := flag.Bool("quick", false, "one model on Cora only, two seeds of 20 epochs, in a minute or so; nothing is kept")
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
	t.Kept, t.seeds, t.epochs = filepath.Join(folder, "runs.jsonl"), 2, 20
	if t.Rows == "" {
		t.Rows = "cora/" + usual.String()
	}
	return all(ctx, t, to)
}

func all(ctx context.Context, t task, to io.Writer) error {
	k, err := runs.Load(t.Kept)
	if err != nil {
		return err
	}
	list, err := runs.Select(rows(), t.Rows, row.id)
	if err != nil {
		return err
	}
	var todo []runs.Row
	for i := range list {
		r := &list[i]
		r.epochs = t.epochs
		if t.seeds > 0 {
			r.seeds = t.seeds
		}
		todo = append(todo, r.run())
	}
	if t.Show {
		return t.tell(list, k, to)
	}
	return errors.Join(k.Finish(ctx, t.Graphs, todo), t.tell(list, k, to))
}

// tell prints what there is, and draws it.
func (t task) tell(list []row, k *runs.Kept, to io.Writer) error {
	found, err := read(list, k)
	if err != nil {
		return err
	}
	if err := found.print(to); err != nil || t.plot == "" {
		return err
	}
	if err := os.WriteFile(t.plot, drawn(found), 0o644); err != nil { //nolint:gosec // a picture to be shown
		return fmt.Errorf("draw the means: %w", err)
	}
	return nil
}
