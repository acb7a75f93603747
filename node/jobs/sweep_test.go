package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// lessonOf is lesson, of one model of a sweep.
func lessonOf(n, model int, accuracy float64) trained.Epoch {
	e := lesson(n)
	e.Model, e.Loss, e.Eval.Val, e.Eval.Score = model, 1/float64(n+model), &accuracy, accuracy
	return e
}

// swept is a run of a sweep whose models stop after so many epochs each. Between two
// reports a while passes.
func swept(last []int, pause time.Duration, look func(epoch, model int)) Train {
	return func(ctx context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
		var result train.Result
		result.Models = make([]train.Result, len(last))
		for n := 1; n <= slices.Max(last); n++ {
			o.Progress(train.Progress{Epoch: n, Step: 1, Steps: 1})
			for model, end := range last {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return train.Result{}, ctx.Err()
				}
				if n > end {
					continue
				}
				if look != nil {
					look(n, model)
				}
				e := lessonOf(n, model, float64(model)/10+float64(n)/100)
				o.Report(e)
				result.Models[model].Best = e
				if result.Best.Eval == nil || e.Eval.Score > result.Best.Eval.Score {
					result.Best = e
				}
			}
		}
		return result, nil
	}
}

// known says which models are known of, epoch by epoch.
func known(j plan.Job) string {
	var list []string
	for _, e := range j.History {
		list = append(list, fmt.Sprintf("%d.%d", e.Epoch, e.Model))
	}
	return strings.Join(list, " ")
}

// However slowly models are told of, and whichever stop early, an epoch becomes known when
// it is known of all that trained in it.
func TestEpochsOfASweepAreWhole(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		last := []int{4, 2, 5}
		var id string
		w.teach(swept(last, time.Second, func(epoch, model int) {
			j := w.job(id)
			if j.Last() != epoch-1 {
				t.Errorf("before epoch %d of model %d, %s is known", epoch, model, known(j))
			}
		}))
		id = "j1"
		w.createSweep(9, 3)
		j := w.ended(id)
		if got := known(j); j.State != plan.Done || got != "1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.2 4.0 4.2 5.2" {
			t.Errorf("it is %s (%s), and known are %s", j.State, j.Error, got)
		}
		if j.Best != 5 || j.BestModel != 2 || !slices.Equal(j.Bests, []int{4, 2, 5}) {
			t.Errorf("the best is epoch %d of model %d, of all %v", j.Best, j.BestModel, j.Bests)
		}
	})
}

// What the run says of the best counts also where nothing was judged on validation.
func TestBestOfASweepWithoutValidation(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			var r train.Result
			for n := 1; n <= 2; n++ {
				r.Models = nil
				for model := range 2 {
					e := lessonOf(n, model, 0)
					e.Eval.Val = nil
					o.Report(e)
					r.Models = append(r.Models, train.Result{Best: e})
				}
			}
			r.Best = r.Models[1].Best
			return r, nil
		})
		j := w.ended(w.createSweep(2, 2))
		if j.State != plan.Done || j.Best != 2 || j.BestModel != 1 || !slices.Equal(j.Bests, []int{2, 2}) {
			t.Errorf("%s: epoch %d of model %d, of all %v", j.State, j.Best, j.BestModel, j.Bests)
		}
	})
}

// A sweep that is interrupted within an epoch's reports tells of the whole ones. What the
// checkpoint knows comes in any order when it goes on.
func TestSweepGoesOn(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			for _, at := range [][2]int{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}} {
				o.Report(lessonOf(at[0], at[1], 0.5))
			}
			return train.Result{}, errors.New("enough")
		})
		id := w.createSweep(4, 3)
		if j := w.ended(id); j.State != plan.Failed || known(j) != "1.0 1.1 1.2" {
			t.Fatalf("it is %s, and known are %s", j.State, known(j))
		}
		w.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
			if o.Known != 1 {
				t.Errorf("%d epochs are known", o.Known)
			}
			var history []trained.Epoch
			for model, epochs := range []int{3, 2, 3} {
				for n := range epochs {
					history = append(history, lessonOf(n+1, model, 0.5))
				}
			}
			o.Announce(train.Forecast{Resumed: 3, History: history})
			o.Report(lessonOf(3, 0, 0.5)) // again
			o.Report(lessonOf(4, 2, 0.5))
			o.Report(lessonOf(4, 0, 0.5))
			o.Report(lessonOf(4, 0, 0.5))
			best := train.Result{Best: lessonOf(1, 0, 0.5)}
			return train.Result{Best: best.Best, Models: []train.Result{best, {Best: lessonOf(1, 1, 0.5)}, {Best: lessonOf(9, 2, 0.5)}}}, nil
		})
		w.apply(plan.ResumeJob{ID: id})
		w.apply(plan.AssignJob{ID: id, Nodes: []string{"a"}})
		// The best epoch of model 2 is unheard of, so the plan's own word stays.
		if j := w.ended(id); j.State != plan.Done || known(j) != "1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.2 4.0 4.2" || !slices.Equal(j.Bests, []int{1, 1, 1}) {
			t.Errorf("it is %s (%s), known are %s, the best %v", j.State, j.Error, known(j), j.Bests)
		}
	})
}

// Many epochs of many models that wait go in commands that the plan takes, each to the
// end of an epoch.
func TestSweepsAreToldInWholeEpochs(t *testing.T) {
	const models, epochs = 60, 30
	r := newReports(plan.Job{Bests: make([]int, models)})
	for n := 1; n <= epochs; n++ {
		for model := range models {
			r.add(plan.Epoch{Epoch: n, Model: model})
		}
	}
	r.add(plan.Epoch{Epoch: epochs + 1})
	told := 0
	for {
		batch, _ := r.next()
		if len(batch) == 0 {
			break
		}
		if len(batch) > plan.MaxCommit || len(batch)%models != 0 {
			t.Fatalf("%d epochs at once", len(batch))
		}
		told += len(batch)
		r.sent(len(batch))
	}
	if told != models*epochs {
		t.Errorf("%d epochs of %d", told, models*epochs)
	}
	r.close(true)
	if batch, closed := r.next(); len(batch) != 1 || !closed {
		t.Errorf("%v at the end", batch)
	}
}

// What is seen of a sweep is the model that is ahead, and an epoch counts once.
func TestSightOfASweep(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(swept([]int{3, 3}, time.Second, nil))
		w.createSweep(3, 2)
		time.Sleep(4500 * time.Millisecond)
		synctest.Wait()
		v := w.runner.View()
		if v.Latest.Epoch != 2 || v.Latest.Model != 1 || v.Evaluated.Model != 1 || v.Totals.Epochs != 2 || v.Progress.Epoch != 3 {
			t.Errorf("%+v", v)
		}
	})
}

// No learning rate helps all of a sweep.
func TestAdviceForASweep(t *testing.T) {
	diverged := &trained.Diverged{Epoch: 2, Checkpoint: "x"}
	for models, want := range map[int]bool{0: true, 3: false} {
		r := &run{job: plan.Job{ID: "j1", Bests: make([]int, models)}}
		if got := strings.Contains(r.advised(diverged).Error(), "--lr RATE"); got != want {
			t.Errorf("of %d models it is advised: %v", models, got)
		}
	}
}
