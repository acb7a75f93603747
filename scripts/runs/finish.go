package runs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/engine/train"
)

// A Row is what is trained with several seeds.
type Row struct {
	Name   string
	Recipe train.Recipe // but for its seed
	// Train does one seed.
	Train func(ctx context.Context, r train.Recipe) (train.Result, error)
}

// Finish does the runs of rows that are not kept yet, the first seed of all of them first,
// and tells of each as it is done.
func (k *Kept) Finish(ctx context.Context, rows []Row, seeds int, to io.Writer) error {
	commit, err := Commit()
	if err != nil {
		return err
	}
	for seed := range uint64(seeds) {
		for _, r := range rows {
			if err := k.finish(ctx, r, seed, commit, to); err != nil {
				return fmt.Errorf("%s, seed %d: %w", r.Name, seed, err)
			}
		}
	}
	return nil
}

// finish does one run, unless it is kept.
func (k *Kept) finish(ctx context.Context, r Row, seed uint64, commit string, to io.Writer) error {
	id, err := Digest(r.Recipe)
	if err != nil {
		return err
	}
	if _, done := k.Of(r.Name, id, 0)[seed]; done {
		return nil
	}
	r.Recipe.Seed = seed
	begun := time.Now()
	result, err := r.Train(ctx, r.Recipe)
	if err != nil {
		return err
	}
	best := result.Best
	one := Run{
		Row: r.Name, Recipe: id, Seed: seed, Commit: commit, Epoch: best.Epoch, Val: 100 * best.Eval.Val.Accuracy,
		Test: 100 * best.Eval.Test.Accuracy, Seconds: time.Since(begun).Seconds(),
	}
	_, _ = fmt.Fprintf(to, "%s, seed %d: %.2f (epoch %d, %.0f s)\n", one.Row, seed, one.Test, one.Epoch, one.Seconds)
	return k.Add(one)
}
