package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// spoil makes a number infinite that the optimizer of a learner remembers: its weights stay
// finite for long.
func spoil(l *learner) {
	row := l.optimizer.Moments()[1].Row
	row.F32()[0] = float32(math.Inf(1))
}

// A model of a sweep with which no run could go on does not keep the others from being
// saved: what finds it has the next step say so, and the run is saved after that.
func TestAnUnsoundModelDoesNotKeepTheOthersFromBeingSaved(t *testing.T) {
	dir := t.TempDir()
	l := started(t, swept(short("gcn"), "lr=0.01", "lr=0.03"), communities(t, 1500), Options{Threads: 1, Dir: dir, Interval: time.Nanosecond})
	if l.batches.steps < 4 {
		t.Fatalf("an epoch has %d steps", l.batches.steps)
	}
	spoil(l)
	if err := l.epoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := l.at.Diverged; d == nil || d.Step != 2 || !strings.HasPrefix(d.Where, "what the optimizer remembers of ") {
		t.Errorf("it ends with %+v", d)
	}
	if l.learners[1].at.Diverged != nil || !l.saved.good {
		t.Errorf("the other ends with %v, and saved is %+v", l.learners[1].at.Diverged, l.saved)
	}
}

// Where one node has found it, all come to it in the same step.
func TestAllNodesLoseAnUnsoundModelInOneStep(t *testing.T) {
	shards := communities(t, 1500)
	for name, sharing := range map[string]strategy.Settings{"leap": ways()["leap"], "migrate": ways()["migrate"], "local": updating("2", 3)} {
		m := newMesh(3, uneven(len(shards), 3))
		r := everywhere(swept(short("gcn"), "lr=0.01", "lr=0.03"), func(of *Recipe) { of.Sharing = sharing })
		all := m.start(t, r, shards, Options{Threads: 1})
		for _, l := range all {
			spoil(l)
		}
		all[1].doubted = true
		if err := m.each(func(node int) error { return all[node].epoch(t.Context()) }); err != nil {
			t.Fatal(name, err)
		}
		for node, l := range all {
			if d := l.at.Diverged; d == nil || d.Step != 1 || (d.Node == "n1") != (node != 1) || l.learners[1].at.Diverged != nil {
				t.Errorf("%s: on node %d it ends with %+v, and the other with %v", name, node, d, l.learners[1].at.Diverged)
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
		l := started(t, swept(short("gcn"), "lr=0.01", "lr=0.03"), communities(t, 1500), Options{Threads: 1, Dir: dir, Lost: func(int, string) { heard++ }})
		for _, l := range l.learners[:spoilt] {
			spoil(l)
		}
		stop(enough)
		if err := l.train(ctx); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(dir, CheckpointFile))
		if spoilt == 2 {
			if err == nil {
				t.Error("models that none can go on with are saved")
			}
			continue
		}
		if err != nil || heard != 1 || l.at.Diverged == nil || l.learners[1].at.Diverged != nil {
			t.Errorf("%v, told of %d models, they end with %v and %v", err, heard, l.at.Diverged, l.learners[1].at.Diverged)
		}
		got, all := mustRun(t, l.trainer.recipe, communities(t, 1500), Options{Threads: 1, Dir: dir, Resume: true})
		if got.Models[0].Diverged == "" || got.Models[1].Diverged != "" || len(ofModel(all, 1)) != l.trainer.recipe.Epochs {
			t.Errorf("it goes on to %+v", got)
		}
	}
}
