package train_test

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

func TestCoraIsLearnt(t *testing.T) {
	shards := traintest.CoraShards(t)
	r := traintest.CoraRecipe("gcn")
	start := time.Now()
	result, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	t.Logf("%v in all, %v an epoch of which training %v; best %+v", time.Since(start), time.Since(start)/time.Duration(len(all)),
		time.Duration(sum(all)*float64(time.Second))/time.Duration(len(all)), result.Best.Scores)
	if len(all) != r.Epochs || result.Last.Epoch != r.Epochs {
		t.Fatalf("%d epochs were told of, the last is %d", len(all), result.Last.Epoch)
	}
	best := result.Best.Scores
	if best.Test.Accuracy < 0.79 || best.Train.Count != 140 || best.Val.Count != 500 || best.Test.Count != 1000 {
		t.Errorf("the best epoch is %+v", best)
	}
	if all[0].Loss < 1.5 || result.Last.Loss > 1 {
		t.Errorf("the loss went from %g to %g", all[0].Loss, result.Last.Loss)
	}
	for _, e := range all {
		if e.Better(result.Best.Record) {
			t.Errorf("epoch %d is better than the best, %d", e.Epoch, result.Best.Epoch)
		}
	}
}

func sum(all []trained.Epoch) (seconds float64) {
	for _, e := range all {
		seconds += e.Seconds
	}
	return seconds
}
