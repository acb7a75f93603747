package train_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// chained is a recipe whose runs write a checkpoint before the first step: what a step reads is what
// the one before has left.
func chained() recipe.Recipe {
	r := traintest.FullGraph("gcn", 3)
	r.Epochs, r.EvalEvery, r.Sharing = 4, 4, strategy.Given("pipe", "pipe.ways=2", "pipe.chunks=2", "pipe.histories=zeros")
	return r
}

// A node that is alone, and could go on from nowhere, computes nothing before it has a checkpoint.
func TestAloneTheFirstCheckpointIsWritten(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for _, full := range []bool{false, true} {
		dir := t.TempDir()
		if full {
			dir = fullFolder(t)
		}
		var products atomic.Int64
		saved := errors.New("there is no checkpoint yet")
		o := train.Options{
			Strategies: strategies.All, Threads: 1, Dataset: "d", Dir: dir,
			Device: func(threads int) (tensor.Device, error) {
				return &counted{cpu.New(threads), func() {
					if products.Add(1) == 1 {
						_, saved = os.Stat(filepath.Join(dir, train.CheckpointFile))
					}
				}}, nil
			},
		}
		_, err := train.Run(t.Context(), chained(), shards, o)
		unsaved, is := errors.AsType[*checkpoint.Unsaved](err)
		switch {
		case !full && (err != nil || products.Load() == 0 || saved != nil):
			t.Errorf("with room: %v, and at the first of %d products: %v", err, products.Load(), saved)
		case full && (!is || unsaved.At.Epoch != 1 || unsaved.At.Step != 0 || products.Load() > 0):
			t.Errorf("without room it made %d products: %v", products.Load(), err)
		}
	}
}

// A node that shares a run goes on without one, says so before the first epoch's end, and learns the
// same.
func TestSharedTheFirstCheckpointMayFail(t *testing.T) {
	shards := traintest.Communities(t, 600)
	run := func(full bool) (hash string, said []error, epochs int) {
		m, dirs := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)), []string{t.TempDir(), t.TempDir()}
		if full {
			dirs[1] = fullFolder(t)
		}
		results := make([]train.Result, 2)
		err := m.Each(func(node int) (err error) {
			held, o := m.Of(node, shards, train.Options{Strategies: strategies.All, Threads: 1, Dataset: "d", Dir: dirs[node]})
			if node == 1 {
				o.Kept = func(err error) { said = append(said, err) }
				o.Report = func(trained.Epoch) {
					if len(said) == 0 {
						t.Error("an epoch ends before anything is known of a checkpoint")
					}
					epochs++
				}
			}
			results[node], err = train.Run(t.Context(), chained(), held, o)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dirs[0], train.CheckpointFile)); err != nil {
			t.Error(err)
		}
		return results[0].Last.Hash, said, epochs
	}
	want, kept, _ := run(false)
	got, said, epochs := run(true)
	if len(kept) == 0 || kept[0] != nil {
		t.Errorf("with room: %v", kept)
	}
	if len(said) == 0 || said[0] == nil || epochs != 4 || got != want {
		t.Errorf("without room: %v, after %d epochs it has %s, not %s", said, epochs, got, want)
	}
}
