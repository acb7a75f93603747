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
