package grappa_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Where weights are relative to each other, the gradient is that of weighted losses over
// the sum of all weights, whoever computes which.
func TestRelativeWeightsAddUpOverAllNodes(t *testing.T) {
	shards := traintest.Tiny(t, 120, 6)
	r := traintest.ExactRecipe("sage")
	gradient := func(correction string, nodes int) ([]float64, *train.Learner) {
		r.Sharing = apart("groups=3", "loader=strict", "sweep=off", "correction="+correction)
		m := traintest.NewMesh(nodes, []int{0, 0, 1 % nodes, 1 % nodes, 2 % nodes, 2 % nodes})
		all := m.Start(t, r, shards, isolation(traintest.Wide(train.Options{Threads: 1})))
		if err := m.Each(func(node int) error {
			_, err := traintest.StepOnce(t.Context(), all[node], 1, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return traintest.GradientOf(all[0]), all[0]
	}
	plain, one := gradient(grappa.CorrectNode, 1)
	sum := 0.0
	roots := one.Run.Batches.Slots[0].Roots
	for _, v := range roots {
		a, d, _ := traintest.IsolatedOf(one).Of([]uint32{v}).Coverage(v)
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
		if got, _ := gradient(grappa.CorrectSelf, nodes); !(traintest.Distance(got, plain) < 1e-6) {
			t.Errorf("on %d nodes the gradient is %g off", nodes, traintest.Distance(got, plain))
		}
	}
}

// Steps in isolation allocate nothing, whatever groups see and losses weigh.
func TestIsolatedStepsAllocateNothing(t *testing.T) {
	shards := traintest.Communities(t, 900)
	all := isolations()
	all["links"] = []string{"period=1", "groups=5"}
	for name, g := range all {
		r := traintest.Small("sage")
		r.Batch = 60
		if r.Sharing = apart(g...); name == "links" {
			r = linking(r, g...)
			r.Links.From, r.Batch = link.InBatch, 300
		}
		tr := traintest.Started(t, r, shards, train.Options{Threads: 2})
		s, step := tr.Run.Batches.Slots[0], 0
		one := func() {
			tr.Run.Batches.Set(s, step%tr.Run.Batches.Steps)
			if err := tr.Run.Method.Prepare(t.Context(), tr.Run.Batches.Workers[0], s, 1); err != nil {
				t.Fatal(err)
			}
			if _, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, r.Rate); err != nil {
				t.Fatal(err)
			}
			step++
		}
		for range 2 * tr.Run.Batches.Steps {
			one()
		}
		if n := testing.AllocsPerRun(20, one); n > 0 {
			t.Errorf("%s: a step allocates %g times", name, n)
		}
	}
}
