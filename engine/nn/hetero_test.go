package nn_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// A part of the vertices is computed as all are, to the bit, whatever edges of each relation it has.
func TestRelationsInPartsAreTheWhole(t *testing.T) {
	device := cpu.New(2)
	defer device.Close()
	seen := 0
	for i, s := range specs() {
		if !s.Related() {
			continue
		}
		name, _ := json.Marshal(s)
		g := newGraph(uint64(i), 23, 9)
		m := newModel(t, s, 9)
		r := newRun(t, device, m, weights(m, uint64(i)))
		r.Train, r.Gradients = false, tensor.Matrix{}
		got := slices.Clone(r.stages(g, false))
		want := r.read(r.Forward(g.wholes(m), g.input(device, g.all(), false)))
		for j := range want {
			if math.Float64bits(got[j]) != math.Float64bits(want[j]) {
				t.Errorf("%s: number %d is %v in parts and %v in the whole", name, j, got[j], want[j])
				break
			}
		}
		seen++
	}
	if seen < 20 {
		t.Errorf("%d models tell relations apart", seen)
	}
}

// A relation that reaches no target is left out, and all gradients are as if it were computed.
func TestRelationsThatReachNoTargetAreLeftOut(t *testing.T) {
	for _, model := range []string{"hetero:sage", "hetero:gcn", "hetero:gin", "hetero:gat"} {
		s := nn.Defaults(model)
		s.Layers, s.Hidden, s.Heads, s.Relations, s.Ends = 1, 2, 1, 4, "0,1,0,1"
		m, g := newModel(t, s, 3), newGraph(1, 40, 3)
		for _, roots := range [][]uint32{{0, 2, 4, 6}, {3, 7}} { // of the first type; without in-edges
			bs, device := g.blocks(m, roots, 0), &tallest{Device: ref()}
			if want := len(roots) == 2; bs[0].Idle[0] != want || !bs[0].Idle[1] || !bs[0].Idle[3] {
				t.Fatalf("%s: relations that reach none: %v", model, bs[0].Idle)
			}
			gradients := func() ([]float64, int) {
				r := newRun(t, device, m, weights(m, 1))
				device.products = 0
				r.loss(bs, g.input(device, bs[0].Vertices, false), g.labelsOf(roots), true)
				return r.read(r.Gradients), device.products
			}
			got, few := gradients()
			bs[0].Idle = nil
			want, many := gradients()
			mustNear(t, model, got, want, 0)
			if few >= many {
				t.Errorf("%s: %d products, and with all relations %d", model, few, many)
			}
		}
	}
}

// Edges that vertices have under two relations are dropped from attention each by itself.
func TestAttentionOfRelationsIsDroppedApart(t *testing.T) {
	s := nn.Defaults("hetero:gat")
	s.Layers, s.Hidden, s.Heads, s.Relations = 1, 1, 1, 2
	s.InputDropout, s.Dropout, s.AttentionDropout = 0, 0, 0.5
	m, g := newModel(t, s, 2), newGraph(1, 40, 2)
	bs := g.wholes(m)
	bs[0].Apart[1] = bs[0].Apart[0] // both relations have the same edges
	logits := func(relation int) []float64 {
		w := weights(m, 1)
		for _, p := range m.Params()[2:] { // those of the convolution, of the first relation
			half := p.Rows * p.Cols / 2
			one, other := w[p.Offset:][:half], w[p.Offset+half:][:half]
			if relation == 1 {
				copy(other, one)
				clear(one)
			} else {
				clear(other)
			}
		}
		r := newRun(t, ref(), m, w)
		return slices.Clone(r.read(r.Forward(bs, g.input(r.device, g.all(), false))))
	}
	if slices.Equal(logits(0), logits(1)) {
		t.Error("both relations drop the same edges")
	}
}
