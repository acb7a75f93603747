package p3

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// specs are the models that have a front, with all that could make it go wrong: what
// drops, what is beside the first layer's sum, and what follows it.
func specs() map[string]nn.Spec {
	all := map[string]nn.Spec{}
	add := func(name, model string, change func(s *nn.Spec)) {
		s := nn.Defaults(model)
		s.Layers, s.Hidden, s.Dropout, s.InputDropout = 2, 4, 0.3, 0.3
		if change != nil {
			change(&s)
		}
		all[name] = s
	}
	add("gcn", "gcn", nil)
	add("sage", "sage", nil)
	add("sage gcn", "sage", func(s *nn.Spec) { s.Aggregator = "gcn" })
	add("gin", "gin", nil)
	add("mlp", "mlp", nil)
	add("one product", "mlp", func(s *nn.Spec) { s.Layers, s.Head = 1, nn.HeadNone })
	add("gat", "gat", func(s *nn.Spec) { s.Heads, s.AttentionDropout = 2, 0.3 })
	add("residual gat", "gat", func(s *nn.Spec) { s.Heads, s.Residual = 2, true })
	add("gatv2", "gat", func(s *nn.Spec) { s.Heads, s.Version, s.AttentionDropout = 2, 2, 0.3 })
	add("residual sage", "sage", func(s *nn.Spec) { s.Residual, s.Norm = true, nn.NormLayer })
	add("residual gcn", "gcn", func(s *nn.Spec) { s.Residual = true })
	return all
}

func TestGradientsAreThoseOfOneNode(t *testing.T) {
	for name, spec := range specs() {
		for i, k := range []kindOf{denseKind, halfKind, sparseKind, countsKind} {
			j := newJob(spec, k, 7+i)
			want, loss := j.single(t, 2, 1, rootsOf(j, 1, 17))
			for _, nodes := range []int{1, 2, 3, 5} {
				for _, j.deterministic = range []bool{false, true} {
					for _, j.sliced = range []bool{false, true} {
						for _, j.resample = range []bool{false, true} {
							what := fmt.Sprintf("%s, %+v, %d nodes, deterministic %v, roots in slices %v, resampled %v", name, k, nodes, j.deterministic, j.sliced, j.resample)
							within(t, what, j, nodes, want, loss)
						}
					}
				}
			}
		}
	}
}

// within has nodes do the second step and compares all they have made.
func within(t *testing.T, what string, j *job, nodes int, want []float64, loss float64) {
	t.Helper()
	tb := j.sit(t, nodes)
	for _, s := range tb.seats {
		s.front.From(2, 0)
	}
	for step, size := range []int{20, 17} { // the first is another, larger one
		if err := tb.run(t.Context(), 2, step, rootsOf(j, step, size)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for _, s := range tb.seats {
		if d := distance(s.gradient(), want); !(d < 1e-10) || math.Abs(s.loss-loss) > 1e-10*loss {
			t.Fatalf("%s: node %d is %.3g off, with a loss of %g in place of %g", what, s.node, d, s.loss, loss)
		}
	}
}

// Columns that nodes can't be dealt evenly, and nodes without any.
func TestUnevenColumns(t *testing.T) {
	for _, c := range []struct{ columns, nodes int }{{1433, 5}, {3, 5}, {1, 3}, {65, 3}} {
		for _, k := range []kindOf{scaledKind, onesKind} {
			for _, name := range []string{"gcn", "residual sage"} {
				j := newJob(specs()[name], k, c.columns)
				want, loss := j.single(t, 2, 1, rootsOf(j, 1, 17))
				for _, j.deterministic = range []bool{false, true} {
					for _, j.resample = range []bool{false, true} {
						within(t, fmt.Sprintf("%s, %+v of %d columns, deterministic %v, resampled %v", name, k, c.columns, j.deterministic, j.resample), j, c.nodes, want, loss)
					}
				}
			}
		}
	}
}

// Fewer roots than nodes.
func TestNodesWithoutRoots(t *testing.T) {
	for _, k := range []kindOf{denseKind, sparseKind} {
		for _, name := range []string{"gcn", "mlp"} {
			j := newJob(specs()[name], k, 9)
			want, loss := j.single(t, 2, 1, rootsOf(j, 1, 2))
			tb := j.sit(t, 5)
			for _, s := range tb.seats {
				s.front.From(2, 1)
			}
			if err := tb.run(t.Context(), 2, 1, rootsOf(j, 1, 2)); err != nil {
				t.Fatal(err)
			}
			for _, s := range tb.seats {
				if d := distance(s.gradient(), want); !(d < 1e-10) || math.Abs(s.loss-loss) > 1e-10*loss {
					t.Errorf("%s, %+v: node %d is %.3g off, its loss %g in place of %g", name, k, s.node, d, s.loss, loss)
				}
			}
		}
	}
}
