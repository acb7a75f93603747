package train

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Where weights are relative to each other, the gradient is that of weighted losses over
// the sum of all weights, whoever computes which.
func TestRelativeWeightsAddUpOverAllNodes(t *testing.T) {
	shards := tiny(t, 120, 6)
	r := exactRecipe("sage")
	gradient := func(correction string, nodes int) ([]float64, *learner) {
		r.Sharing = apart(strategy.GrappaSettings{Groups: 3, Loader: strategy.Strict, Sweep: "off", Correction: correction})
		m := newMesh(nodes, []int{0, 0, 1 % nodes, 1 % nodes, 2 % nodes, 2 % nodes})
		all := m.start(t, r, shards, isolation(wide(Options{Threads: 1})))
		if err := m.each(func(node int) error {
			_, err := all[node].one(t.Context(), 1, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all[0].gradient(), all[0]
	}
	plain, one := gradient(strategy.CorrectNode, 1)
	sum := 0.0
	roots := one.batches.slots[0].roots
	for _, v := range roots {
		a, d, _ := one.isolated.of([]uint32{v}).Coverage(v)
		if d == 0 {
			a, d = 1, 1
		}
		sum += float64(a) / float64(d)
	}
	if sum >= float64(len(roots)) {
		t.Fatalf("%d roots weigh %g", len(roots), sum)
	}
	for i := range plain {
		plain[i] *= float64(len(roots)) / sum
	}
	for _, nodes := range []int{1, 3} {
		if got, _ := gradient(strategy.CorrectSelf, nodes); !(distance(got, plain) < 1e-6) {
			t.Errorf("on %d nodes the gradient is %g off", nodes, distance(got, plain))
		}
	}
}

// Steps in isolation allocate nothing, whatever groups see and losses weigh.
func TestIsolatedStepsAllocateNothing(t *testing.T) {
	shards := communities(t, 900)
	for name, g := range isolations() {
		r := small("sage")
		r.Batch = 60
		r.Sharing = apart(g)
		tr := started(t, r, shards, Options{Threads: 2})
		s, step := tr.batches.slots[0], 0
		one := func() {
			tr.batches.set(s, step%tr.batches.steps)
			if err := tr.batches.hands[0].fill(t.Context(), s, &tr.phases, 1); err != nil {
				t.Fatal(err)
			}
			if _, _, err := tr.step(t.Context(), s, r.Rate); err != nil {
				t.Fatal(err)
			}
			step++
		}
		for range 2 * tr.batches.steps {
			one()
		}
		if n := testing.AllocsPerRun(20, one); n > 0 {
			t.Errorf("%s: a step allocates %g times", name, n)
		}
	}
}
