package nn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// TestGradients compares every gradient with the slope of the loss, for all that
// specs lists, while what they are computed over takes turns: one to three hops,
// sampled, whole or for a part of all vertices, sparse or dense, dropout, self-loops, wide and narrow features.
func TestGradients(t *testing.T) {
	once := specs()
	for i, s := range slices.Repeat(once, 2) {
		i += 3 * (i / len(once)) // what takes turns by 3 and 5 meets other specs
		s.Layers = 1 + i%3
		if s.Model == "gcnii" || s.Model == "resgcn" {
			s.Layers = 2 + i%2
		}
		dropout := []float64{0, 0.3}[i/2%2]
		s.Dropout, s.InputDropout = dropout, dropout
		if strings.HasSuffix(s.Model, "gat") {
			s.AttentionDropout = dropout
		}
		if s.SelfLoops = []string{nn.LoopsAuto, nn.LoopsOn, nn.LoopsAuto}[i%3]; s.Related() {
			s.SelfLoops = nn.LoopsAuto
		}
		columns, sparse, fanout := []int{3, 9}[i/3%2], i%5 < 2, []int{0, 2}[i/4%2]
		name, _ := json.Marshal(s)
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			t.Parallel()
			g := newGraph(uint64(i), 9, columns)
			m := newModel(t, s, columns)
			roots, bs := []uint32{4, 3, 1, 7}, g.wholes(m)
			switch {
			case i%7 < 4:
				bs = g.blocks(m, roots, fanout)
			case i%7 == 4 && m.Hops() > 0:
				roots = []uint32{2, 3, 4, 5, 6}
				bs[m.Hops()-1] = g.block(roots, 0, m.Form(), true)
			default:
				roots = g.all()
			}
			w := weights(m, uint64(i))
			r := newRun(t, ref(), m, w)
			in, labels := g.input(r.device, first(bs, roots), sparse), g.labelsOf(roots)
			r.loss(bs, in, labels, true)
			got := r.read(r.Gradients)
			slope := func(j int, h float64) float64 {
				x := w[j]
				at := func(x float64) float64 {
					w[j] = x
					r.device.Write(r.Weights, w)
					return r.loss(bs, in, labels, false)
				}
				up, down := at(x+h), at(x-h)
				w[j] = x
				return (up - down) / (2 * h)
			}
			seen := 0.0
			for _, p := range m.Params() {
				for j := p.Offset; j < p.Offset+p.Rows*p.Cols; j++ {
					seen += got[j] * got[j]
					// A smaller distance stays on one side of where ReLU bends.
					want := slope(j, 1e-5)
					for _, h := range []float64{1e-6, 1e-7} {
						if !near(got[j], want, 1e-6, 1e-8) {
							want = slope(j, h)
						}
					}
					if !near(got[j], want, 1e-6, 1e-8) {
						t.Errorf("%s (sparse %v): %s[%d]: gradient %v, slope %v", name, sparse, p.Name, j-p.Offset, got[j], want)
						break
					}
				}
			}
			if seen == 0 {
				t.Errorf("%s: all gradients are 0", name)
			}
		})
	}
}

// TestGradientsOfLearntRows compares the gradient at the rows of the input with the slope of the
// loss, where these are learnt, for all that specs lists. Weights have the gradients that they have
// without that.
func TestGradientsOfLearntRows(t *testing.T) {
	all, moved := specs(), atomic.Int64{}
	t.Cleanup(func() { // a few have no ReLU that lets anything through
		if n := int(moved.Load()); n < len(all)*9/10 {
			t.Errorf("only %d of %d have a gradient", n, len(all))
		}
	})
	for i, s := range all {
		s.Layers = 1 + i%3
		if s.Model == "gcnii" || s.Model == "resgcn" {
			s.Layers = 2 + i%2
		}
		dropout := []float64{0, 0.3}[i%2]
		s.Dropout, s.InputDropout = dropout, dropout
		name, _ := json.Marshal(s)
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			t.Parallel()
			columns := []int{3, 9}[i/3%2]
			g, m := newGraph(uint64(i), 9, columns), newModel(t, s, columns)
			roots := []uint32{4, 3, 1, 7}
			bs, w := g.blocks(m, roots, []int{0, 2}[i/4%2]), weights(m, uint64(i))
			r := newRun(t, ref(), m, w)
			in, labels := g.input(r.device, first(bs, roots), false), g.labelsOf(roots)
			x, random := r.read(in.Dense), rand.New(rand.NewPCG(uint64(i), 9))
			for j := range x { // features have zeros, at which scores and largest numbers bend
				x[j] = random.NormFloat64()
			}
			r.device.Write(in.Dense, x)
			r.loss(bs, in, labels, true)
			want := r.read(r.Gradients)
			if !r.InputGradient().None() {
				t.Fatalf("%s: a gradient that nobody asked for", name)
			}
			m.LearnInput()
			r = newRun(t, ref(), m, w)
			r.loss(bs, in, labels, true)
			mustNear(t, string(name), r.read(r.Gradients), want, 1e-9)
			got := r.read(r.InputGradient())
			if len(got) != len(x) {
				t.Fatalf("%s: a gradient of %d numbers at %d", name, len(got), len(x))
			}
			seen := false
			for j, was := range x {
				at := func(to float64) float64 {
					x[j] = to
					r.device.Write(in.Dense, x)
					return r.loss(bs, in, labels, false)
				}
				slope := func(h float64) float64 { return (at(was+h) - at(was-h)) / (2 * h) }
				want := slope(1e-5)
				for _, h := range []float64{1e-6, 1e-7} { // a smaller distance stays on one side of where ReLU bends
					if !near(got[j], want, 1e-6, 1e-8) {
						want = slope(h)
					}
				}
				at(was)
				seen = seen || got[j] != 0
				if !near(got[j], want, 1e-6, 1e-8) {
					t.Errorf("%s: number %d: gradient %v, slope %v", name, j, got[j], want)
					break
				}
			}
			if seen {
				moved.Add(1)
			}
		})
	}
}
