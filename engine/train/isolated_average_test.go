package train

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Models that are averaged after each step of plain descent are the one that learns from
// the sum of all gradients; where they are averaged later they are another.
func TestModelsThatStayAreAveraged(t *testing.T) {
	shards := tiny(t, 120, 6)
	r := exactRecipe("sage")
	r.Epochs, r.EvalEvery = 2, 1<<20
	learn := func(batch int, g strategy.GrappaSettings, owners ...int) ([]float64, uint64) {
		r.Batch, r.Sharing = batch, apart(g)
		m := newMesh(slices.Max(owners)+1, owners)
		all := m.start(t, r, shards, isolation(wide(Options{Threads: 1})))
		if err := m.each(func(node int) error { return all[node].train(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		for node, l := range all {
			if distance(l.numbers(), all[0].numbers()) != 0 {
				t.Errorf("node %d has another model", node)
			}
		}
		if e := all[0].history[1]; e.Sent.Bytes[strategy.Model] != 0 {
			t.Errorf("models travel: %+v", e.Sent)
		}
		return all[0].numbers(), all[0].optimizer.Steps()
	}
	three := strategy.GrappaSettings{Groups: 3, Loader: strategy.Strict}
	averaged := three
	averaged.Average = 2
	even := []int{0, 0, 1, 1, 2, 2}
	one, _ := learn(0, averaged, even...)
	added, _ := learn(0, three, even...)
	if d := distance(one, added); !(d < 1e-12) {
		t.Errorf("after epochs of one step models are %g off", d)
	}
	apart, updates := learn(20, averaged, even...)
	added, _ = learn(20, three, even...)
	if d := distance(apart, added); !(d > 1e-6) || math.IsNaN(d) {
		t.Errorf("models that learn by themselves come to the same: %g", d)
	}
	// A node that no group is left for, since it came later, takes the average and no part
	// in it, wherever it is among the others.
	for _, late := range [][]int{{0, 0, 1, 1, 2, 3}, {0, 1, 2, 2, 3, 3}} {
		got, of := learn(20, averaged, late...)
		if d := distance(got, apart); !(d < 1e-12) || of != updates {
			t.Errorf("with %v models are %g off, and of %d updates in place of %d", late, d, of, updates)
		}
	}
}
