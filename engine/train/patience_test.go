package train_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

func scored(accuracy, loss float64) *trained.Epoch { return scoredBy(recipe.Accuracy, accuracy, loss) }

func scoredBy(metric string, accuracy, loss float64) *trained.Epoch {
	e := &trained.Epoch{Scores: &evaluate.Result{Val: evaluate.Scores{Count: 1, Accuracy: accuracy, MacroF1: 1 - accuracy, Loss: loss}}}
	e.Rank(metric)
	return e
}

func TestTheBestEpochAndPatience(t *testing.T) {
	r := recipe.Recipe{Patience: 3, Metric: recipe.Accuracy, Schedule: recipe.Schedule{Kind: recipe.Plateau, Every: 2, Factor: .5}}
	s := trained.State{}
	for i, c := range []struct {
		accuracy, loss float64
		best           bool
		waited, falls  int
	}{
		{.5, 1, true, 0, 0},
		{.6, 2, true, 0, 0},
		{.6, 1.5, true, 0, 0}, // of equal ones, the lower loss
		{.6, 1.5, false, 1, 0},
		{.59, .1, false, 2, 1},
		{.61, 9, true, 0, 1},
		{.6, 0, false, 1, 1},
		{.6, 0, false, 2, 2},
		{.6, 0, false, 3, 2},
	} {
		e := scored(c.accuracy, c.loss)
		e.Epoch = i + 1
		if s.Early {
			t.Fatalf("it stopped before evaluation %d", i+1)
		}
		if got := s.Rise(e, &r); got != c.best || s.Waited != c.waited || s.Falls != c.falls {
			t.Errorf("evaluation %d: best %v, waited %d, fell %d times", i+1, got, s.Waited, s.Falls)
		}
	}
	if !s.Early || s.Best.Epoch != 6 {
		t.Errorf("it ends with %+v", s)
	}
	if scored(.4, 1).Better(scored(.5, 1).Record) || !scoredBy(recipe.MacroF1, .4, 1).Better(scoredBy(recipe.MacroF1, .5, 1).Record) {
		t.Error("the metric does not count")
	}
}

func TestEarlyStopping(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts, r.Epochs, r.Patience, r.Rate = 0, nil, 500, 3, 0.05
	r.EvalEvery = 2
	result, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	if !result.Early || len(all) == r.Epochs {
		t.Fatalf("%d epochs, early %v", len(all), result.Early)
	}
	if since := result.Last.Epoch - result.Best.Epoch; since != 2*r.Patience || len(all) != result.Last.Epoch {
		t.Errorf("it stopped after epoch %d, and the best is %d", result.Last.Epoch, result.Best.Epoch)
	}
	for _, e := range all {
		if (e.Eval != nil) != (e.Epoch%2 == 0) {
			t.Errorf("epoch %d: evaluated %v", e.Epoch, e.Eval != nil)
		}
	}
}
