package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// inTime runs a test in virtual time.
func inTime(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.run()
		defer func() { w.stop() }()
		f(t, w)
	})
}

// ended waits for a job's end, a minute at most.
func (w *world) ended(id string) plan.Job {
	for range 60 {
		if time.Sleep(time.Second); w.job(id).Ended() {
			break
		}
	}
	return w.job(id)
}

// Epochs of a few milliseconds come to the plan in batches, all of them, and hold
// nobody up.
func TestReportsComeInBatches(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(1000, 2*time.Millisecond))
		begin := time.Now()
		id := w.create(1000)
		time.Sleep(1900 * time.Millisecond)
		if n := w.job(id).Last(); n < 700 || n > 950 {
			t.Errorf("%d epochs are known after 1.9 s", n)
		}
		time.Sleep(200 * time.Millisecond)
		j := w.job(id)
		if j.State != plan.Done || len(j.History) != 1000 || j.Best != 1 {
			t.Errorf("after %s it is %s with %d epochs, the best %d", time.Since(begin), j.State, len(j.History), j.Best)
		}
		if n := w.told(); n < 8 || n > 13 {
			t.Errorf("%d commits", n)
		}
		if e := j.History[4]; e.Seconds != 0.123457 || e.Eval.Score != 0.5 || e.Eval.Loss != 2 || e.Rows.Local != 3 || e.Generation != j.Generation {
			t.Errorf("%+v", e)
		}
	})
}

// Nothing is lost while there is no leader, though there is more than one command
// can hold, and the job ends when there is one again.
func TestLeaderIsAway(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(3*plan.MaxCommit+7, 0))
		synctest.Wait() // it has caught up
		w.set(func() { w.silent = true })
		id := w.create(10_000)
		time.Sleep(time.Minute)
		if j := w.job(id); j.State != plan.Running || j.Last() != 0 {
			t.Errorf("%+v", j)
		}
		w.set(func() { w.silent = false })
		time.Sleep(2 * time.Second)
		if j := w.job(id); j.State != plan.Done || len(j.History) != 3*plan.MaxCommit+7 {
			t.Errorf("it is %s with %d epochs", j.State, len(j.History))
		}
	})
}

// A report that is refused ends the run; if the job is still this node's, it fails.
func TestReportIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(1000, time.Second))
		w.set(func() { w.refuse = plan.ErrInvalid })
		id := w.create(1000)
		time.Sleep(5 * time.Second)
		if j := w.job(id); j.State != plan.Failed || !strings.Contains(j.Error, "makes no sense") {
			t.Errorf("%+v", j)
		}
		if v := w.runner.View(); v.Job != "" {
			t.Errorf("%+v", v)
		}
	})
}

// What is given to others meanwhile is left alone.
func TestJobIsTakenAway(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		ended := make(chan error, 1)
		w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			res, err := lessons(1000, time.Second)(ctx, r, s, o)
			ended <- context.Cause(ctx)
			return res, err
		})
		id := w.create(1000)
		time.Sleep(3500 * time.Millisecond)
		old := w.job(id)
		w.apply(plan.FinishJob{ID: id, Node: "a", Generation: old.Generation, State: plan.Stopped})
		if cause := <-ended; !errors.Is(cause, errStale) {
			t.Errorf("ended by %v", cause)
		}
		time.Sleep(time.Second)
		if j := w.job(id); j.State != plan.Stopped || j.Last() != old.Last() {
			t.Errorf("%+v", j)
		}
	})
}

// A wish to stop that came while the node was away is fulfilled when it is back, and
// no job runs twice in one generation.
func TestStoppedWhileAway(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		var runs atomic.Int32
		w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			runs.Add(1)
			return lessons(1000, time.Second)(ctx, r, s, o)
		})
		id := w.create(1000)
		time.Sleep(2500 * time.Millisecond)
		w.stop()
		w.runner = nil
		if j := w.job(id); j.State != plan.Running {
			t.Fatalf("%+v", j)
		}
		w.apply(plan.StopJob{ID: id})
		w.run()
		time.Sleep(time.Second)
		if j := w.job(id); j.State != plan.Stopped || runs.Load() != 1 {
			t.Errorf("%+v after %d runs", j, runs.Load())
		}
	})
}

// A node that stops does not wait for a leader to hear of a job that was stopped before:
// there may be none any more.
func TestNodeStopsWhileNobodyHears(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(1000, time.Second))
		id := w.create(1000)
		time.Sleep(2500 * time.Millisecond)
		w.set(func() { w.silent = true })
		w.apply(plan.StopJob{ID: id})
		time.Sleep(time.Second)
		begin := time.Now()
		late := time.AfterFunc(time.Minute, func() { w.set(func() { w.silent = false }) })
		defer late.Stop()
		if w.stop(); time.Since(begin) > time.Second {
			t.Errorf("the node stopped after %s", time.Since(begin))
		}
	})
}

// The engine of a node that stops is asked to end its run, so that it saves what nodes have yet
// to combine.
func TestNodeThatStopsAsksTheEngine(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		ended := make(chan error, 1)
		w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			res, err := lessons(1000, time.Second)(ctx, r, s, o)
			ended <- context.Cause(ctx)
			return res, err
		})
		w.create(1000)
		<-time.After(2500 * time.Millisecond)
		w.stop()
		if cause := <-ended; !errors.Is(cause, train.ErrAsked) {
			t.Errorf("the run ended by %v", cause)
		}
	})
}

// The node has told of a job's end, and reads of it much later: it does not begin
// the job again.
func TestOldPlanBeginsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		var runs atomic.Int32
		w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			runs.Add(1)
			return lessons(3, time.Second)(ctx, r, s, o)
		})
		id := w.create(3)
		old := w.now()
		time.Sleep(time.Second)
		w.set(func() { w.late = true })
		time.Sleep(time.Minute)
		w.runner.Adopt(old) // it has changed in some way that is of no interest here
		time.Sleep(time.Minute)
		if j := w.job(id); j.State != plan.Done || runs.Load() != 1 {
			t.Errorf("%+v after %d runs", j, runs.Load())
		}
	})
}

// What the checkpoint knows and the plan does not is told first; what both know is
// not told again.
func TestResumedRunTellsWhatIsMissing(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(3, 0))
		id := w.create(10)
		time.Sleep(time.Second)
		w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			if !o.Resume || o.Dir != w.runner.Folder(w.job("j2")) || o.Dataset != w.now().Datasets[datasetID].Content() {
				t.Errorf("%+v", o)
			}
			o.Announce(train.Forecast{Resumed: 5, History: []trained.Epoch{lesson(1), lesson(2), lesson(3), lesson(4), lesson(5)}})
			o.Report(lesson(4)) // again
			o.Report(lesson(6))
			return train.Result{}, errors.New("enough")
		})
		if j := w.job(id); j.State != plan.Done {
			t.Fatalf("%+v", j)
		}
		id = w.create(10)
		time.Sleep(time.Second)
		j := w.job(id)
		if j.State != plan.Failed || j.Error != "enough" || len(j.History) != 6 {
			t.Errorf("it is %s (%s) with %d epochs", j.State, j.Error, len(j.History))
		}
	})
}

// Before the node has read the plan, it must not take a job's folder for one that is
// forgotten.
func TestNothingIsRemovedBeforeThePlanIsRead(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(1, 0))
		id := w.create(1)
		time.Sleep(time.Second)
		folder := w.runner.Folder(w.job(id))
		stray := filepath.Join(filepath.Dir(folder), "j9-00000009")
		if err := os.Mkdir(stray, 0o700); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.runner = nil
		w.set(func() { w.silent = true })
		w.run()
		w.runner.Adopt(new(plan.State)) // as at a start
		time.Sleep(time.Minute)
		for _, path := range []string{folder, stray} {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
		w.set(func() { w.silent = false })
		w.runner.Adopt(w.now())
		time.Sleep(5 * time.Second)
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of no job: %v", err)
		}
	})
}

// What this process borrows before it has read the plan is in use. What an earlier one has left is not.
func TestWhatIsBorrowedBeforeThePlanIsRead(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.stop()
		w.runner = nil
		left, borrowed := filepath.Join(w.dir, "jobs", "forecast.borrowed-0"), filepath.Join(w.dir, "jobs", "forecast.borrowed-1")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.silent = true })
		w.run()
		if err := os.Mkdir(borrowed, 0o700); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.silent = false })
		<-time.After(5 * time.Second) // of virtual time: a round ends
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what an earlier start has left: %v", err)
		}
		if _, err := os.Stat(borrowed); err != nil {
			t.Errorf("what is in use: %v", err)
		}
		config := w.runner.cfg
		config.Dir = filepath.Join(w.dir, "new", "jobs")
		Open(config)
		if err := os.Mkdir(filepath.Join(config.Dir, "forecast.borrowed-2"), 0o700); err != nil {
			t.Errorf("on a new node: %v", err)
		}
	})
}

func TestSentencesFitThePlan(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\x1b": "a b ", strings.Repeat("é", plan.MaxSentence): strings.Repeat("é", plan.MaxSentence/2), "\xff": " ",
	} {
		if got := sentence(errors.New(in)); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestWhatIsRecorded(t *testing.T) {
	e := lesson(1).Record
	e.Loss, e.Phases.Reduce, e.Eval.Test, e.Predicted = math.NaN(), 0.25, new(math.Inf(1)), &epoch.Layout{Stages: 2, Seconds: 1e-9}
	e.Why = strings.Repeat("<", plan.MaxWhy)
	r := recorded(e, 7)
	if r.Seconds != 0.123457 || r.Phases.Reduce != 0.25 || r.Loss != 0 || *r.Eval.Test != 0 || r.Eval.Train != nil || *r.Eval.Val != 0.5 || r.Generation != 7 || *r.Predicted != (epoch.Layout{Stages: 2}) {
		t.Errorf("%+v %+v", r, r.Eval)
	}
	if !math.IsInf(*e.Eval.Test, 1) || e.Predicted.Seconds == 0 {
		t.Error("the run's own record changed")
	}
	if written, err := json.Marshal(r.Why); err != nil || len(written) > plan.MaxWhy || len(written) < plan.MaxWhy-6 {
		t.Errorf("%d bytes of why (%v)", len(written), err)
	}
	e.Eval = nil
	if r := recorded(e, 7); r.Eval != nil {
		t.Errorf("%+v", r)
	}
}
