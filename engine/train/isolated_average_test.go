package train

import (
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Models that are averaged after each step of plain descent are the one that learns from
// the sum of all gradients; where they are averaged later they are another.
func TestModelsThatStayAreAveraged(t *testing.T) {
	shards := tiny(t, 120, 6)
	r := exactRecipe("sage")
	r.Epochs, r.EvalEvery = 2, 1<<20
	learn := func(batch int, g strategy.GrappaSettings) []float64 {
		r.Batch, r.Sharing = batch, apart(g)
		m := newMesh(3, []int{0, 0, 1, 1, 2, 2})
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
		return all[0].numbers()
	}
	three := strategy.GrappaSettings{Groups: 3, Loader: strategy.Strict}
	averaged := three
	averaged.Average = 2
	if d := distance(learn(0, averaged), learn(0, three)); !(d < 1e-12) {
		t.Errorf("after epochs of one step models are %g off", d)
	}
	if d := distance(learn(20, averaged), learn(20, three)); !(d > 1e-6) || math.IsNaN(d) {
		t.Errorf("models that learn by themselves come to the same: %g", d)
	}
	errs := ends(t, newMesh(4, []int{0, 0, 1, 1, 2, 3}), shards, func(_ int, to *Recipe, _ []*graph.Shard, o *Options) {
		*to, *o = r, isolation(*o)
		to.Sharing = apart(averaged)
	})
	said(t, errs, "grappa.average_every=2: each node has a model, and there are groups for 3 of 4 nodes only")
}
