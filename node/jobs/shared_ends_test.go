package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A disk that is full on one node does not end what the others bring to its end; only
// where nothing comes of the job, it does.
func TestFullDiskOfOneNode(t *testing.T) {
	for name, c := range map[string]struct {
		full  int           // the node
		takes time.Duration // until the others are done
		state plan.JobState
		says  string
	}{
		"the others are done": {2, 10 * second, plan.Done, ""},
		"nobody is":           {2, time.Hour, plan.Failed, "on node gamma: write a checkpoint"},
		"the first":           {0, 10 * second, plan.Failed, "on node alpha: write a checkpoint"},
	} {
		inCrowd(t, func(t *testing.T, w *crowd) {
			w.teach(func(ctx context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
				if o.Work.Self == c.full {
					return train.Result{}, &checkpoint.Unsaved{}
				}
				select {
				case <-time.After(c.takes):
				case <-ctx.Done():
					return train.Result{}, ctx.Err()
				}
				o.Report(lesson(1))
				return train.Result{Best: lesson(1), Last: lesson(1)}, nil
			})
			begin := time.Now()
			j := w.ended(w.share(1))
			advised := strings.HasSuffix(j.Error, ": free some space in the data directory, then go on with `hopmesh train resume "+j.ID+"`")
			if j.State != c.state || !strings.Contains(j.Error, c.says) || advised != (c.says != "") {
				t.Errorf("%s: it is %s: %q", name, j.State, j.Error)
			}
			if took := time.Since(begin); took > sparePatience+second {
				t.Errorf("%s: after %s", name, took)
			}
		})
	}
}

// A node whose disk is full from the start takes part all the same.
func TestFullDiskFromTheStart(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		w.teach(lessons(1, second))
		dir := w.others["c"].cfg.Dir
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if j := w.ended(w.share(1)); j.State != plan.Done {
			t.Errorf("it is %s: %q", j.State, j.Error)
		}
	})
}

// What this node itself has done since it began is progress, if it is more than one
// place in the job; but it may not die for ever.
func TestStepsOfASharedJobCount(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		id := c.share(8)
		folder := t.TempDir()
		attempt := func(steps ...int) error {
			r := newRun(c.others["b"].cfg, c.job(id), plan.Dataset{}, folder)
			err := r.attempt()
			for _, n := range steps {
				r.stepped(3, n)
			}
			return err
		}
		for n := range mostInEpoch {
			if err := attempt(50, 51+n, 52+n); err != nil {
				t.Fatalf("after %d deaths: %v", n, err)
			}
		}
		if err := attempt(50, 51); err == nil || !strings.Contains(err.Error(), "died 10 times within one epoch") {
			t.Errorf("after %d: %v", mostInEpoch, err)
		}
		// Whoever resumes it begins to count anew; what stays where it began counts.
		for range mostDeaths {
			if err := attempt(50, 50); err != nil {
				t.Fatal(err)
			}
		}
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "died twice") {
			t.Error(err)
		}
		// The engine tells of steps.
		seen := make(chan string, 9)
		c.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			for _, step := range []int{7, 8} {
				o.Progress(train.Progress{Epoch: 3, Step: step})
				note, err := os.ReadFile(filepath.Join(o.Dir, attemptsFile))
				if err != nil {
					t.Error(err)
				}
				if o.Work.Self == 1 {
					seen <- string(note)
				}
			}
			<-time.After(second) // until all have come so far
			return train.Result{Best: lesson(1), Last: lesson(1)}, nil
		})
		c.apply(plan.StopJob{ID: id})
		synctest.Wait()
		c.ended(c.share(1))
		if a, b := <-seen, <-seen; !strings.Contains(a, `"begun":1`) || !strings.Contains(b, `"begun":0,"in_epoch":1`) {
			t.Errorf("it is noted %s, then %s", a, b)
		}
	})
}

// The engine is told how many epochs the plan knows: it does not begin anew where it has
// lost them.
func TestEngineIsToldWhatIsKnown(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		known := make(chan int, 9)
		c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			known <- o.Known
			return c.Train(ctx, r, s, o)
		})
		id := c.share(6)
		time.Sleep(2500 * time.Millisecond)
		c.apply(plan.StopJob{ID: id})
		synctest.Wait()
		c.apply(plan.ResumeJob{ID: id})
		c.assign()
		c.ended(id)
		for n := range 6 {
			if got, want := <-known, n/3*2; got != want {
				t.Errorf("run %d is told of %d epochs, not %d", n, got, want)
			}
		}
	})
}

// A node whose old run takes long to end can be seen by the others all the same.
func TestWayIsOpenedBeforeTheOldRunEnds(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			result, err := c.Train(ctx, r, s, o)
			if o.Work.Self == 1 && ctx.Err() != nil {
				<-time.After(3 * time.Minute)
			}
			return result, err
		})
		id := c.share(6)
		old := c.job(id)
		time.Sleep(2500 * time.Millisecond)
		c.net(old.Generation, 3).cut(0, 2)
		time.Sleep(600 * time.Millisecond)
		j := c.job(id)
		c.lines.Lock()
		opens := slices.Clone(c.opens)
		c.lines.Unlock()
		if j.Generation == old.Generation || !slices.Equal(opens[3:], []uint64{j.Generation, j.Generation, j.Generation}) {
			t.Errorf("ways are open in %v, and the job is of generation %d after %d", opens, j.Generation, old.Generation)
		}
		// One that is overtaken is closed again.
		c.apply(plan.AssignJob{ID: id, Nodes: j.Nodes, Owners: j.Owners, Generation: j.Generation})
		time.Sleep(3 * time.Minute)
		j = c.ended(id)
		whole(t, j, 6)
		time.Sleep(4 * time.Minute)
		if n := len(c.opens); j.State != plan.Done || n != 9 || c.hung() != n {
			t.Errorf("it is %s, of %d ways %d are closed", j.State, n, c.hung())
		}
	})
}
