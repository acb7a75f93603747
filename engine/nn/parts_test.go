package nn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// apart makes a pass over a graph that is cut after some of its vertices, part by part
// within each stage, and returns the loss. Gradients are added to r's.
func (g *graph) apart(t *testing.T, r *run, cuts []int, sparse bool) float64 {
	type part struct {
		*nn.Pass
		own      []uint32
		block    sample.Block
		x, carry tensor.Matrix
		seen, dy tensor.Matrix
		dcarry   tensor.Matrix
	}
	d, none := r.device, tensor.Matrix{}
	var parts []*part
	for i, first := range cuts {
		end := g.n
		if i+1 < len(cuts) {
			end = cuts[i+1]
		}
		p := &part{Pass: r.NewPass(d, newArena(t, d)), own: g.all()[first:end]}
		p.Weights, p.Gradients, p.Key, p.Train = r.Weights, r.Gradients, r.Key, r.Train
		p.Begin()
		p.block = g.block(p.own, 0, r.Form(), false)
		parts = append(parts, p)
	}
	kept := newArena(t, d)
	whole := func(cols int) tensor.Matrix {
		m := kept.Alloc(d.Type(), g.n, cols)
		d.Zero(m)
		return m
	}
	own := func(m tensor.Matrix, p *part) tensor.Matrix { return m.RowRange(int(p.own[0]), len(p.own)) }
	places := func(p *part) (rows []int32) {
		for _, v := range p.block.Vertices {
			rows = append(rows, int32(v))
		}
		return rows
	}
	stages := r.Stages()
	for s, info := range stages {
		seen := whole(info.In)
		for _, p := range parts {
			if s == 0 {
				continue
			}
			p.seen = p.Enter(s, p.x, p.own)
			d.Combine(own(seen, p), 1, p.seen, 0, none)
		}
		for _, p := range parts {
			var in nn.Input
			block, x := &p.block, p.seen
			switch {
			case info.Hops == 0:
				block = nil
				in = g.input(d, p.own, sparse)
			case s == 0:
				in = g.input(d, p.block.Vertices, sparse)
			default:
				x = kept.Alloc(d.Type(), len(p.block.Vertices), info.In)
				d.Gather(x, []tensor.Part{{X: seen}}, p.block.Vertices)
			}
			p.x = p.Layer(s, block, in, x, p.carry)
			if s == 0 && info.CarryOut > 0 {
				p.carry = p.x
			}
		}
	}
	sum := 0.0
	for _, p := range parts {
		p.dy = kept.Alloc(d.Type(), p.x.Rows, p.x.Cols)
		loss, _ := d.CrossEntropy(p.dy, p.x, g.labelsOf(p.own), 1)
		sum += loss
		if !p.carry.None() {
			p.dcarry = kept.Alloc(d.Type(), p.carry.Rows, p.carry.Cols)
			d.Zero(p.dcarry)
		}
	}
	for s, info := range slices.Backward(stages) {
		at := whole(info.In)
		for _, p := range parts {
			if s == 0 && stages[0].CarryOut > 0 {
				d.Combine(p.dy, 1, p.dy, 1, p.dcarry)
			}
			dseen := p.Back(s, p.dy, p.dcarry, s > 0)
			switch {
			case s == 0:
			case info.Hops == 0:
				d.Combine(own(at, p), 1, own(at, p), 1, dseen)
			default:
				d.ScatterAdd(at, dseen, places(p))
			}
		}
		for _, p := range parts {
			if s > 0 {
				p.dy = own(at, p)
				p.Leave(s, p.dy)
			}
		}
	}
	return sum
}

// A pass in parts, whose rows are all of now, computes what a whole one does.
func TestPassesInParts(t *testing.T) {
	for i, s := range specs() {
		if s.Jump != nn.JumpNone {
			continue
		}
		s.Layers = 1 + i%3
		if s.Model == "gcnii" || s.Model == "resgcn" {
			s.Layers = 3
		}
		s.Dropout, s.InputDropout = 0.3, 0.2
		if s.Model == "gat" {
			s.AttentionDropout = 0.3
		}
		name, _ := json.Marshal(s)
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			t.Parallel()
			sparse := i%2 == 0
			g := newGraph(uint64(i), 11, 5)
			m := newModel(t, s, 5)
			w := weights(m, uint64(i))
			want := newRun(t, ref(), m, w)
			bs := g.wholes(m)
			loss := want.loss(bs, g.input(want.device, first(bs, g.all()), sparse), g.labels, true)
			for _, m := range []*nn.Model{m, m.Split()} {
				got := newRun(t, ref(), m, w)
				mustNear(t, string(name)+": the loss", []float64{g.apart(t, got, []int{0, 3, 7}, sparse)}, []float64{loss}, 1e-12)
				mustNear(t, string(name)+": the gradient", got.read(got.Gradients), want.read(want.Gradients), 1e-11)
			}
		})
	}
}

// Only a layer that multiplies by one weight, and gets narrower, is split: as one more stage,
// with the same weights.
func TestSplitModels(t *testing.T) {
	for _, c := range []struct {
		model  string
		layers int
		norm   string
		skips  bool
		split  bool
	}{
		{"gcn", 1, nn.NormNone, false, true}, {"gcn", 3, nn.NormLayer, false, true}, {"gcn", 2, nn.NormNone, true, false},
		{"sage", 2, nn.NormNone, false, false}, {"gcnii", 2, nn.NormNone, false, false},
	} {
		s := nn.Defaults(c.model)
		s.Layers, s.Hidden, s.Norm, s.Residual = c.layers, 4, c.norm, c.skips
		for features, narrower := range map[int]bool{5: true, 4: false} {
			m, err := nn.New(s, features, 3)
			if err != nil {
				t.Fatal(err)
			}
			split := m.Split()
			more := 0
			if c.split && (narrower || c.layers == 1) {
				more = 1
			}
			if len(split.Stages()) != len(m.Stages())+more || split.Hops() != m.Hops() || !slices.Equal(split.Params(), m.Params()) {
				t.Errorf("%+v of %d features: %+v", c, features, split.Stages())
			}
		}
	}
}
