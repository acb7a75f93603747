package train_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// spoil makes a number infinite that the optimizer of a learner remembers: its weights stay
// finite for long.
func spoil(l *train.Learner) {
	row := l.Optimizer.Moments()[1].Row
	row.F32()[0] = float32(math.Inf(1))
}

// A model of a sweep with which no run could go on does not keep the others from being
// saved: what finds it has the next step say so, and the run is saved after that.
func TestAnUnsoundModelDoesNotKeepTheOthersFromBeingSaved(t *testing.T) {
	dir := t.TempDir()
	l := traintest.Started(t, traintest.Swept(traintest.Short("gcn"), "lr=0.01", "lr=0.03"), traintest.Communities(t, 1500), train.Options{Threads: 1, Dir: dir, Interval: time.Nanosecond})
	if l.Run.Batches.Steps < 4 {
		t.Fatalf("an epoch has %d steps", l.Run.Batches.Steps)
	}
	spoil(l)
	if err := l.Run.Epoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := l.At.Diverged; d == nil || d.Step != 2 || !strings.HasPrefix(d.Where, "what the optimizer remembers of ") {
		t.Errorf("it ends with %+v", d)
	}
	if _, good := l.Run.Checkpoints.Last(); l.Run.Learners[1].At.Diverged != nil || !good {
		t.Errorf("the other ends with %v, and saved is %+v", l.Run.Learners[1].At.Diverged, l.Run.Checkpoints)
	}
}

// Where one node has found it, all come to it in the same step.
func TestAllNodesLoseAnUnsoundModelInOneStep(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for name, sharing := range map[string]strategy.Settings{"leap": traintest.Ways()["leap"], "migrate": traintest.Ways()["migrate"], "local": traintest.Updating("2", 3)} {
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		r := everywhere(traintest.Swept(traintest.Short("gcn"), "lr=0.01", "lr=0.03"), func(of *recipe.Recipe) { of.Sharing = sharing })
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		for _, l := range all {
			spoil(l)
		}
		all[1].Doubted = true
		if err := m.Each(func(node int) error { return all[node].Run.Epoch(t.Context()) }); err != nil {
			t.Fatal(name, err)
		}
		for node, l := range all {
			if d := l.At.Diverged; d == nil || d.Step != 1 || (d.Node == "n1") != (node != 1) || l.Run.Learners[1].At.Diverged != nil {
				t.Errorf("%s: on node %d it ends with %+v, and the other with %v", name, node, d, l.Run.Learners[1].At.Diverged)
			}
		}
	}
}

// A run that is interrupted is saved without it, and goes on so.
func TestAnInterruptedSweepIsSavedWithoutAnUnsoundModel(t *testing.T) {
	for _, spoilt := range []int{1, 2} {
		dir := t.TempDir()
		ctx, stop := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		heard := 0
		l := traintest.Started(t, traintest.Swept(traintest.Short("gcn"), "lr=0.01", "lr=0.03"), traintest.Communities(t, 1500), train.Options{Threads: 1, Dir: dir, Lost: func(int, string) { heard++ }})
		for _, l := range l.Run.Learners[:spoilt] {
			spoil(l)
		}
		stop(enough)
		if err := l.Run.Train(ctx); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(dir, train.CheckpointFile))
		if spoilt == 2 {
			if err == nil {
				t.Error("models that none can go on with are saved")
			}
			continue
		}
		if err != nil || heard != 1 || l.At.Diverged == nil || l.Run.Learners[1].At.Diverged != nil {
			t.Errorf("%v, told of %d models, they end with %v and %v", err, heard, l.At.Diverged, l.Run.Learners[1].At.Diverged)
		}
		got, all := traintest.MustRun(t, l.Run.Recipe, traintest.Communities(t, 1500), train.Options{Threads: 1, Dir: dir, Resume: true})
		if got.Models[0].Diverged == "" || got.Models[1].Diverged != "" || len(ofModel(all, 1)) != l.Run.Recipe.Epochs {
			t.Errorf("it goes on to %+v", got)
		}
	}
}
