package train_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

var errFlipped = errors.New("shard 1 is damaged")

// verified trains on three nodes, of which node 1 finds out by a function what its shards are
// like, and returns the errors, the epochs that node 0 reports, and the folders.
func verified(t *testing.T, dirs []string, damaged func(wait bool) error, change func(node int, held []*graph.Shard)) (errs []error, epochs []trained.Epoch, left []string) {
	t.Helper()
	shards := traintest.Communities(t, 1500)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs = make([]error, 3)
	for len(dirs) < 3 {
		dirs = append(dirs, t.TempDir())
	}
	_ = m.Each(func(node int) error {
		r := traintest.Short("gcn")
		r.Sharing, r.Epochs = traintest.Ways()["leap"], 4
		held, o := m.Of(node, shards, train.Options{
			Threads: 1, Dataset: "d", Resume: true, Dir: dirs[node], Interval: time.Nanosecond,
			Verify: func(context.Context, bool) error { return nil },
		})
		if node == 0 {
			o.Report = func(e trained.Epoch) { epochs = append(epochs, e) }
		}
		if node == 1 {
			o.Verify = func(_ context.Context, wait bool) error { return damaged(wait) }
		}
		if change != nil {
			change(node, held)
		}
		_, errs[node] = train.Run(ctx, r, held, o)
		if _, is := errors.AsType[*train.Damaged](errs[node]); is {
			cancel() // as the plan does
		}
		return nil
	})
	return errs, epochs, dirs
}

// No epoch ends and no checkpoint is written before all nodes have verified their shards.
func TestEpochsWaitForVerification(t *testing.T) {
	var done atomic.Bool
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	errs, epochs, _ := verified(t, dirs, func(wait bool) error {
		if !wait && !done.Load() {
			return train.ErrUnverified
		}
		if !done.Swap(true) {
			for _, dir := range dirs {
				if _, err := os.Stat(filepath.Join(dir, train.CheckpointFile)); err == nil {
					t.Error("a checkpoint was written before the shards were verified")
				}
			}
		}
		return nil
	}, nil)
	if errors.Join(errs...) != nil || len(epochs) != 4 {
		t.Errorf("%d epochs, %v", len(epochs), errs)
	}
}

// Where one node finds damage, no node reports the epoch or keeps anything of it; what was
// agreed on before is kept, and leads to the same weights.
func TestDamageLeavesNoTrace(t *testing.T) {
	_, want, _ := verified(t, nil, func(bool) error { return nil }, nil)
	for after := range 3 {
		var waits atomic.Int32 // the others ask, too
		errs, epochs, dirs := verified(t, nil, func(wait bool) error {
			if wait {
				waits.Add(1)
			}
			if int(waits.Load()) > after {
				return errFlipped
			}
			return nil
		}, nil)
		if _, is := errors.AsType[*train.Damaged](errs[1]); !is || !errors.Is(errs[1], errFlipped) {
			t.Fatalf("after %d epochs: %v", after, errs[1])
		}
		if len(epochs) != after || traintest.Hashes(epochs) != traintest.Hashes(want[:after]) {
			t.Errorf("after %d epochs: %d are reported", after, len(epochs))
		}
		for node, dir := range dirs {
			path := filepath.Join(dir, train.CheckpointFile)
			c, err := trained.OpenCheckpoint(path)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if at := c.Models[0].State; at.Epoch > after+1 {
				t.Errorf("after %d epochs, node %d keeps step %d of epoch %d", after, node, at.Step, at.Epoch)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		errs, again, _ := verified(t, dirs, func(bool) error { return nil }, nil)
		if errors.Join(errs...) != nil || len(again) == 0 || again[len(again)-1].Hash != want[3].Hash {
			t.Errorf("after %d epochs: resumed, %d epochs and %v", after, len(again), errs)
		}
	}
}

// Weights that diverge since a shard is damaged are no reason to ask for another rate, on any
// node.
func TestDamageIsNoDivergence(t *testing.T) {
	errs, _, _ := verified(t, nil, func(wait bool) error {
		if wait {
			return errFlipped
		}
		return train.ErrUnverified
	}, func(node int, held []*graph.Shard) {
		if node == 1 {
			for i, s := range held {
				if s != nil {
					copy(held[i:], traintest.Spoilt([]*graph.Shard{s}, 0))
				}
			}
		}
	})
	for node, err := range errs {
		if _, diverged := errors.AsType[*trained.Diverged](err); diverged || err == nil {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// What keeps a node from reading its shards for a while says nothing of them.
func TestUnverifiedIsNoDamage(t *testing.T) {
	full := errors.New("too many files are open")
	_, err := train.Run(t.Context(), traintest.Short("gcn"), traintest.Communities(t, 400), train.Options{
		Threads: 1, Strategies: strategies.All, Verify: func(context.Context, bool) error { return errors.Join(train.ErrUnverified, full) },
	})
	if _, is := errors.AsType[*train.Damaged](err); is || !errors.Is(err, full) {
		t.Error(err)
	}
}

// A shard is damaged in the middle of an epoch, and the run ends for another reason before its
// node has looked: nothing that was computed with the shard since is kept, by any node.
func TestNoStepKeepsDamage(t *testing.T) {
	const epoch, bad = 2, 3 // while the gradients of this step are asked for, the damage happens
	shards := traintest.Communities(t, 1500)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var damaged atomic.Bool
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Kind == peer.Gradient && q.Epoch == epoch && q.Step == bad {
			damaged.Store(true)
		}
		if q.Kind == peer.Gradient && q.Epoch == epoch && q.Step == bad+2 {
			cancel(errors.New("another node is gone"))
		}
		return nil
	}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	_ = m.Each(func(node int) error {
		r := traintest.Short("gcn")
		r.Sharing, r.Epochs, r.Batch = traintest.Ways()["leap"], 4, 100
		held, o := m.Of(node, shards, train.Options{
			Threads: 1, Dataset: "d", Resume: true, Dir: dirs[node], Interval: time.Hour,
			Verify: func(context.Context, bool) error { return nil },
		})
		if node == 1 {
			o.Verify = func(_ context.Context, wait bool) error {
				switch {
				case !damaged.Load():
					return nil
				case !wait:
					return train.ErrUnverified
				}
				cancel(errors.New("the leader knows of the loss")) // before this node can say anything
				return errFlipped
			}
		}
		if _, err := train.Run(ctx, r, held, o); err == nil {
			t.Errorf("node %d has trained to the end", node)
		}
		return nil
	})
	kept := 0
	for node, dir := range dirs {
		c, err := trained.OpenCheckpoint(filepath.Join(dir, train.CheckpointFile))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept++
		// The gradients of the bad step were computed before, and may have gone with a question.
		if at := c.Models[0].State; at.Epoch > epoch || at.Epoch == epoch && at.Step > bad+1 {
			t.Errorf("node %d keeps %d steps of epoch %d", node, at.Step, at.Epoch)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if kept == 0 {
		t.Error("no node has kept anything")
	}
}
