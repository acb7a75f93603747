package grappa_test

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Models that are averaged after each step of plain descent are the one that learns from
// the sum of all gradients; where they are averaged later they are another.
func TestModelsThatStayAreAveraged(t *testing.T) {
	shards := traintest.Tiny(t, 120, 6)
	r := traintest.ExactRecipe("sage")
	r.Epochs, r.EvalEvery = 2, 1<<20
	learn := func(batch int, g []string, owners ...int) ([]float64, uint64) {
		r.Batch, r.Sharing = batch, apart(g...)
		m := traintest.NewMesh(slices.Max(owners)+1, owners)
		all := m.Start(t, r, shards, isolation(traintest.Wide(train.Options{Threads: 1})))
		if err := m.Each(func(node int) error { return all[node].Run.Train(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		for node, l := range all {
			if traintest.Distance(traintest.NumbersOf(l), traintest.NumbersOf(all[0])) != 0 {
				t.Errorf("node %d has another model", node)
			}
		}
		if e := all[0].History[1]; e.Sent.Bytes[peer.Model] != 0 {
			t.Errorf("models travel: %+v", e.Sent)
		}
		return traintest.NumbersOf(all[0]), all[0].Optimizer.Steps()
	}
	three := []string{"groups=3", "loader=strict"}
	averaged := append(slices.Clone(three), "average_every=2")
	even := []int{0, 0, 1, 1, 2, 2}
	one, _ := learn(0, averaged, even...)
	added, _ := learn(0, three, even...)
	if d := traintest.Distance(one, added); !(d < 1e-12) {
		t.Errorf("after epochs of one step models are %g off", d)
	}
	apart, updates := learn(20, averaged, even...)
	added, _ = learn(20, three, even...)
	if d := traintest.Distance(apart, added); !(d > 1e-6) || math.IsNaN(d) {
		t.Errorf("models that learn by themselves come to the same: %g", d)
	}
	// A node that no group is left for, since it came later, takes the average and no part
	// in it, wherever it is among the others.
	for _, late := range [][]int{{0, 0, 1, 1, 2, 3}, {0, 1, 2, 2, 3, 3}} {
		got, of := learn(20, averaged, late...)
		if d := traintest.Distance(got, apart); !(d < 1e-12) || of != updates {
			t.Errorf("with %v models are %g off, and of %d updates in place of %d", late, d, of, updates)
		}
	}
}
