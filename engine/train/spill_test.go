package train_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A job whose evaluations lie in files is interrupted in the middle of one, by a node that
// is lost or by one that joins, and goes on to the end that it would have had. Nothing is
// left of the files.
func TestASpillingEvaluationIsInterrupted(t *testing.T) {
	shards := traintest.Communities(t, 6000)
	r := traintest.Small("gcn")
	r.Epochs, r.Metric, r.Model.Hidden = 2, recipe.ROCAUC, 256
	r.Sharing = strategy.Given("leap", "topology=sharded")
	r.Sharing.Deterministic = true
	dirs := func() (all []string) {
		for range 3 {
			all = append(all, t.TempDir())
		}
		return all
	}
	filed := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		return err != nil || strings.Contains(string(maps), "/rows-") // no Linux
	}
	var inFiles atomic.Bool
	// run runs the job on so many nodes until question at asks for rows of an evaluation.
	run := func(nodes int, memory uint64, folders []string, at int64) (last train.Result, asked int64, err error) {
		m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
		var questions atomic.Int64
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Kind != peer.Activation {
				return nil
			}
			if filed() {
				inFiles.Store(true)
			}
			if questions.Add(1) == at {
				return traintest.ErrEnough
			}
			return nil
		}
		err = m.Together(t, func(ctx context.Context, node int) error {
			held, o := m.Of(node, shards, train.Options{Strategies: strategies.All, Threads: 1, Memory: memory, Dir: folders[node], Dataset: "d", Resume: true})
			result, err := train.Run(ctx, r, held, o)
			if node == 0 {
				last = result
			}
			return err
		})
		return last, questions.Load(), err
	}
	_, _, err := run(3, budget.Program+1<<20, dirs(), -1)
	short, is := errors.AsType[*budget.Short](err)
	if !is {
		t.Fatal(err)
	}
	memory := short.Needs + 1<<19 // other nodes need a little more
	want, all, err := run(3, memory, dirs(), -1)
	if err != nil || !inFiles.Load() || want.Last.Scores == nil || want.Last.Scores.Val.AUC <= 0.5 {
		t.Fatalf("in files %v: %+v, %v", inFiles.Load(), want.Last.Scores, err)
	}
	plenty, _, err := run(3, 0, dirs(), -1)
	if err != nil || plenty.Last.Hash != want.Last.Hash || plenty.Last.Scores.Val != want.Last.Scores.Val || plenty.Last.Scores.Test != want.Last.Scores.Test {
		t.Errorf("in memory %+v, in files %+v, %v", plenty.Last.Scores, want.Last.Scores, err)
	}
	for _, c := range []struct {
		nodes, then int
		at          int64
	}{{3, 2, all / 2}, {3, 3, all - 1}, {2, 3, all / 3}, {3, 1, all/2 + 3}} {
		folders := dirs()
		if _, _, err := run(c.nodes, memory, folders, c.at); !errors.Is(err, traintest.ErrEnough) {
			t.Fatalf("%+v: %v", c, err)
		}
		got, _, err := run(c.then, memory+32<<20, folders, -1)
		if err != nil || got.Last.Hash != want.Last.Hash || got.Last.Scores.Val != want.Last.Scores.Val || got.Last.Scores.Train != want.Last.Scores.Train {
			t.Errorf("%+v: %+v and not %+v, %v", c, got.Last.Scores, want.Last.Scores, err)
		}
		for _, folder := range folders {
			left, err := os.ReadDir(folder)
			if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != train.CheckpointFile {
				t.Errorf("%+v: left are %v, %v", c, left, err)
			}
		}
	}
	if _, err := os.Stat("/proc/self/maps"); err == nil && filed() {
		t.Error("files are mapped still")
	}
}
