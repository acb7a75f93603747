package hgt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/nn/nntest"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// naive computes the published formulas edge by edge.
type naive struct {
	*nntest.Graph
	spec   nn.Spec
	w      []float64
	params []nn.Param
}

func (n *naive) weight(name string, row, col int) float64 {
	for _, p := range n.params {
		if p.Name == name {
			return n.w[p.Offset+row*p.Cols+col]
		}
	}
	panic("there is no weight " + name)
}

// linear is x times a weight plus its bias, of a type whose rows follow those of others.
func (n *naive) linear(x []float64, name string, kind, out int) []float64 {
	y := make([]float64, out)
	for c := range y {
		y[c] = n.weight(name+".bias", kind, c)
		for r, v := range x {
			y[c] += v * n.weight(name+".weight", kind*len(x)+r, c)
		}
	}
	return y
}

// through is x, head by head, times the matrices of a relation.
func (n *naive) through(x []float64, name string, relation int) []float64 {
	y, width := make([]float64, len(x)), len(x)/n.spec.Heads
	for c := range y {
		first := c / width * width
		for r := range width {
			y[c] += x[first+r] * n.weight(name, relation*len(x)+first+r, c%width)
		}
	}
	return y
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func (n *naive) layer(k int, x [][]float64) [][]float64 {
	at, s := fmt.Sprintf("layers.%d.", k), n.Shard
	typed := func(ends []int, relation int) int {
		if n.spec.Ends == "" {
			return 0
		}
		return ends[relation]
	}
	all := make([][]float64, len(x))
	for v, row := range x {
		first, end := s.Indptr[v], s.Indptr[v+1]
		if all[v] = row; first == end {
			continue
		}
		width := len(row) / n.spec.Heads
		sums, y := make([]float64, len(row)), make([]float64, len(row))
		kind := typed(closes, int(s.Related.Of[first]))
		query := n.linear(row, at+"queries", kind, len(row))
		for h := range n.spec.Heads {
			total := 0.0
			for e := first; e < end; e++ {
				relation, source := int(s.Related.Of[e]), x[s.Indices[e]]
				key := n.through(n.linear(source, at+"keys", typed(begins, relation), len(row)), at+"relations.attention", relation)
				message := n.through(n.linear(source, at+"values", typed(begins, relation), len(row)), at+"relations.message", relation)
				score := 0.0
				for c := h * width; c < (h+1)*width; c++ {
					score += key[c] * query[c]
				}
				share := math.Exp(score * n.weight(at+"relations.prior", relation, h) / math.Sqrt(float64(width)))
				total += share
				for c := h * width; c < (h+1)*width; c++ {
					sums[c] += share * message[c]
				}
			}
			for c := h * width; c < (h+1)*width; c++ {
				sums[c] /= total
				sums[c] *= sigmoid(1.702 * sums[c])
			}
		}
		gate := sigmoid(n.weight(at+"skip", kind, 0))
		for c, z := range n.linear(sums, at+"output", kind, len(row)) {
			y[c] = gate*z + (1-gate)*row[c]
		}
		all[v] = y
	}
	return all
}

// TestFormulas compares logits with the published formulas, written down edge by edge.
func TestFormulas(t *testing.T) {
	for name, s := range models() {
		if s.Residual || s.Norm != nn.NormNone {
			continue
		}
		world := newWorld(6)
		m, w := nntest.NewModel(t, s)
		b := world.Batch(t, m, 0, world.All())
		r := nntest.NewRun(t, reference.New(), m, w)
		r.Train = false
		got := r.Read(r.Forward(b.Blocks, world.Input(r.Device, b.Blocks[0].Vertices)))
		n, x := &naive{Graph: world, spec: s, w: w, params: m.Params()}, make([][]float64, vertices)
		for v := range x {
			x[v] = n.linear(world.X[v*nntest.Columns:][:nntest.Columns], "encoder", 0, s.Hidden)
			for c, z := range x[v] {
				x[v][c] = max(z, 0)
			}
		}
		for k := range s.Layers {
			x = n.layer(k, x)
		}
		for v := range x {
			for c, want := range n.linear(x[v], "head", 0, nntest.Classes) {
				if y := got[v*nntest.Classes+c]; !nntest.Near(y, want, 1e-9, 1e-9) {
					t.Fatalf("%s: logit %d of vertex %d is %v and not %v", name, c, v, y, want)
				}
			}
		}
	}
}
