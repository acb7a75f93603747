//go:build long

package grappa_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Models of which each node has its own go back to what they last were together, if a step
// was made from that.
func TestModelsThatStayDivergeFromAGoodCheckpoint(t *testing.T) {
	shards := traintest.Tiny(t, 120, 6)
	r := traintest.ExactRecipe("sage")
	r.Optimizer.Kind, r.EvalEvery, r.Epochs, r.Batch = "sgd", 100, 100, 20
	r.Sharing = apart("groups=3", "loader=strict", "average_every=2")
	reports := 0
	for _, rate := range []float64{1e30, 1e12, 1e9} {
		for _, interval := range []time.Duration{1, time.Hour} {
			folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
			run := func(rate float64) []error {
				return traintest.Ends(t, traintest.NewMesh(3, []int{0, 0, 1, 1, 2, 2}), shards, func(node int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
					*to, *o = r, isolation(*o)
					to.Rate, o.Dir, o.Interval = rate, folders[node], interval
				})
			}
			for node, err := range run(rate) {
				d, ok := errors.AsType[*trained.Diverged](err)
				if !ok {
					t.Fatalf("node %d, at a rate of %g: %v", node, rate, err)
				}
				if d.Checkpoint == "" {
					continue
				}
				reports++
				if node == 0 {
					traintest.GoesOn(t, d, func(rate float64) error { return run(rate)[0] })
				}
			}
		}
	}
	if reports == 0 {
		t.Error("none is told of")
	}
}
