package pipe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// staged is a recipe whose stages have weights of their own, and of which most epochs end
// before they have settled.
func staged() recipe.Recipe {
	r := traintest.FullGraph("gcnii", 4)
	r.Sharing = strategy.Given(pipe.Name, "pipe.stages=3", "pipe.ways=1", "pipe.period=4")
	r.EvalEvery, r.Sharing.Deterministic = 3, true // so that nothing is measured
	return r
}

// Whatever epoch a run ends with, each node is left with a checkpoint of all that stages
// have learnt: the same that one node leaves.
func TestStagesLeaveWholeCheckpoints(t *testing.T) {
	shards := traintest.Communities(t, 300)
	for name, change := range map[string]func(*recipe.Recipe){
		"the last epoch": func(*recipe.Recipe) {},
		"want of patience": func(r *recipe.Recipe) {
			r.Patience, r.Rate, r.EvalEvery = 1, 1e-30, 2
		},
	} {
		r := staged()
		change(&r)
		want := ""
		for _, nodes := range []int{1, 3, 4} {
			dir := t.TempDir()
			folder := func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) }
			results, _, err := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Run(t.Context(), r, shards, train.Options{Threads: 1, Interval: time.Hour, Strategies: traintest.Pipelines}, folder)
			if err != nil {
				t.Fatal(err)
			}
			if results[0].Early != (r.Patience > 0) {
				t.Errorf("%s: the run ended early: %v", name, results[0].Early)
			}
			for node := range nodes {
				c, err := trained.OpenCheckpoint(filepath.Join(folder(node), train.CheckpointFile))
				if err != nil {
					t.Fatal(err)
				}
				s := c.Models[0].State
				got := fmt.Sprint(c.File.Digest(), s.Epoch, s.Step, s.Early)
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if want == "" {
					want = got
				}
				if got != want || s.Epoch != results[0].Last.Epoch+1 {
					t.Errorf("%s: node %d of %d leaves %s, and one node %s", name, node, nodes, got, want)
				}
			}
		}
	}
}

// What is not finite of one stage's weights ends the run on all nodes, in a sentence, in
// the epoch that made it so.
func TestUnsoundStagesEndTheRun(t *testing.T) {
	shards := traintest.Communities(t, 300)
	for _, c := range []struct {
		rate  float64
		epoch int
	}{{1e39, 1}, {1e25, 2}} {
		r := staged()
		r.Optimizer.Kind, r.Rate = "sgd", c.rate
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		err := m.Each(func(node int) error {
			held, o := m.Of(node, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
			_, err := train.Run(t.Context(), r, held, o)
			d, diverged := errors.AsType[*trained.Diverged](err)
			if !diverged || d.Epoch != c.epoch || !strings.Contains(err.Error(), "not finite: start again with a smaller {lr}") {
				return fmt.Errorf("at a rate of %g, node %d: %w", c.rate, node, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Who asks for the end of a run gets it with all that was learnt, on all nodes, though
// stages had not settled; and within a while even where an epoch does not end.
func TestRunsThatAreAskedToEndSettle(t *testing.T) {
	shards := traintest.Communities(t, 300)
	const nodes = 5 // more than write checkpoints while a run goes on
	r := staged()
	r.Epochs, r.EvalEvery = 1000, 1000
	dir := t.TempDir()
	folder := func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) }
	ctx, end := context.WithCancelCause(t.Context())
	m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
	var reports [nodes]int
	err := m.Each(func(node int) error {
		held, o := m.Of(node, shards, train.Options{Threads: 1, Interval: time.Hour, Dataset: "d", Strategies: traintest.Pipelines})
		o.Dir = folder(node)
		o.Report = func(e trained.Epoch) {
			if reports[node] = e.Epoch; node == 1 && e.Epoch == 7 {
				end(fmt.Errorf("that is enough: %w", train.ErrAsked))
			}
		}
		_, err := train.Run(ctx, r, held, o)
		if !errors.Is(err, train.ErrAsked) {
			return fmt.Errorf("node %d: %w", node, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for node := range nodes {
		c, err := trained.OpenCheckpoint(filepath.Join(folder(node), train.CheckpointFile))
		if err != nil {
			t.Fatal(err)
		}
		// All end after the same epoch, which is whole but for being told of.
		if s := c.Models[0].State; s.Epoch+s.Step-1 < reports[1] || s.Epoch+s.Step-1 > reports[1]+3 {
			t.Errorf("node %d stands at step %d of epoch %d, when it had told of %d", node, s.Step, s.Epoch, reports[node])
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What overflows in a part of what only its stage has ends the run on all nodes at once,
// where the weights are whole and where they are not.
func TestUnsoundMomentsEndTheRun(t *testing.T) {
	shards := traintest.Communities(t, 300)
	for _, every := range []int{1, 1000} {
		r := staged()
		r.EvalEvery = every
		all := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Start(t, r, shards, train.Options{Threads: 1, Strategies: traintest.Pipelines})
		first := traintest.PipedOf(all[0]).Worker
		from, _ := first.Own()
		moment := all[0].Optimizer.Moments()[1].Row
		all[0].Run.Device.Write32(moment.View(0, 1, from, 1), []float32{float32(math.Inf(1))})
		var running sync.WaitGroup
		errs := make([]error, len(all))
		for i, l := range all {
			running.Go(func() { errs[i] = l.Run.Train(t.Context()) })
		}
		running.Wait()
		for i, err := range errs {
			if d, diverged := errors.AsType[*trained.Diverged](err); !diverged || d.Epoch != 1 {
				t.Errorf("judged every %d epochs, node %d: %v", every, i, err)
			}
		}
	}
}
