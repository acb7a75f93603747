package nn_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// What is dropped of a vertex does not depend on who else is in the batch, so with
// all neighbours its logits don't, and gradients of batches add up.
func TestBatchesAddUp(t *testing.T) {
	for i, s := range specs() {
		s.Dropout, s.InputDropout = 0.4, 0.4
		if s.Model == "gat" {
			s.AttentionDropout = 0.4
		}
		name, _ := json.Marshal(s)
		g := newGraph(uint64(i), 13, 6)
		m := newModel(t, s, 6)
		w := weights(m, 1)
		do := func(roots []uint32) (logits, gradients []float64) {
			r, bs := newRun(t, ref(), m, w), g.blocks(m, roots, 0)
			in, labels := g.input(r.device, first(bs, roots), i%2 == 0), g.labelsOf(roots)
			logits = r.read(r.Forward(bs, in))
			r.loss(bs, in, labels, true)
			return logits, r.read(r.Gradients)
		}
		one, gradients := do([]uint32{4, 9})
		other, more := do([]uint32{12, 3, 5})
		union, all := do([]uint32{9, 3, 4, 5, 12})
		at := func(l []float64, i int) []float64 { return l[i*classes:][:classes] }
		mustNear(t, string(name)+": logits", union, slices.Concat(at(one, 1), at(other, 1), at(one, 0), at(other, 2), at(other, 0)), 1e-12)
		for j := range gradients {
			gradients[j] += more[j]
		}
		mustNear(t, string(name)+": gradients", gradients, all, 1e-11)
	}
}

// What is dropped is decided by stage, place, vertex and column, by numbers that
// never change.
func TestDropoutIsKeyed(t *testing.T) {
	s := nn.Defaults("mlp")
	s.Layers, s.Hidden, s.Dropout, s.InputDropout = 3, 5, 0.5, 0.25
	g := newGraph(1, 6, 4)
	m := newModel(t, s, 4)
	w := weights(m, 1)
	r := newRun(t, ref(), m, w)
	vertices := []uint32{5, 0, 3}
	n := newNaive(m, g, w)
	dropped := func(x dense, stage, place uint64, p float64) dense {
		for i, v := range vertices {
			for j := range x[i] {
				if r.Key.With(stage).With(place).With(uint64(v)).Column(uint32(j)) < keyed.Threshold(p) {
					x[i][j] = 0
				} else {
					x[i][j] /= 1 - p
				}
			}
		}
		return x
	}
	x := zeros(3, 4)
	for i, v := range vertices {
		copy(x[i], g.x[int(v)*4:])
	}
	x = dropped(x, 0, 0, 0.25)
	for k := range uint64(2) {
		x = dropped(n.conv(int(k), x, nil).each(relu), k, 1, 0.5)
	}
	want := n.conv(2, x, nil)
	for _, sparse := range []bool{false, true} {
		got := r.read(r.Forward(nil, g.input(r.device, vertices, sparse)))
		mustNear(t, "logits", got, slices.Concat(want...), 1e-12)
	}
}

// Dropout is of the step, and only of training.
func TestDropoutIsOfTraining(t *testing.T) {
	s := nn.Defaults("mlp")
	s.Layers, s.Hidden, s.InputDropout, s.Head = 3, 40, 0, nn.HeadLinear
	g := newGraph(1, 5, 4)
	m := newModel(t, s, 4)
	r := newRun(t, ref(), m, weights(m, 1))
	in := g.input(r.device, g.all(), false)
	logits := func() []float64 { r.arena.Reset(); return r.read(r.Forward(nil, in)) }
	before := logits()
	r.Key = r.Key.With(1)
	if slices.Equal(before, logits()) {
		t.Error("another step drops the same")
	}
	r.Train = false
	still := logits()
	r.Key = r.Key.With(1)
	if !slices.Equal(still, logits()) {
		t.Error("something is dropped outside of training")
	}
}

// Several passes of one model may be under way at once.
func TestPassesDoNotMix(t *testing.T) {
	for i, s := range specs() {
		g := newGraph(uint64(i), 12, 5)
		m := newModel(t, s, 5)
		w := weights(m, 1)
		roots := [][]uint32{{1, 4, 6}, {2, 8}}
		var runs []*run
		var want [][]float64
		var logits []tensor.Matrix
		for _, some := range roots {
			r, bs := newRun(t, ref(), m, w), g.blocks(m, some, 0)
			in := g.input(r.device, first(bs, some), false)
			r.loss(bs, in, g.labelsOf(some), true)
			want = append(want, r.read(r.Gradients))
			r.device.Zero(r.Gradients)
			r.arena.Reset()
			logits = append(logits, r.Forward(bs, in))
			runs = append(runs, r)
		}
		for k, r := range runs {
			r.device.CrossEntropy(logits[k], logits[k], g.labelsOf(roots[k]), 1)
			r.Backward(logits[k])
			mustNear(t, s.Model, r.read(r.Gradients), want[k], 1e-13)
		}
	}
}

// Float32 on the CPU agrees with the reference.
func TestCPUAgrees(t *testing.T) {
	device := cpu.New(2)
	defer device.Close()
	rows, kept := newArena(t, device), newArena(t, device)
	for i, s := range specs() {
		s.Hidden *= 6
		name, _ := json.Marshal(s)
		g := newGraph(uint64(i), 40, 33)
		m := newModel(t, s, 33)
		w := initial(t, m, uint64(i))
		var logits, gradients [2][]float64
		roots := []uint32{1, 4, 6, 3, 9, 30, 12, 13}
		for k, r := range []*run{newRun(t, ref(), m, w), runIn(device, rows, kept, m, w)} {
			bs := g.blocks(m, roots, 3)
			in := g.input(r.device, first(bs, roots), i%2 == 0)
			logits[k] = r.read(r.Forward(bs, in))
			r.loss(bs, in, g.labelsOf(roots), true)
			gradients[k] = r.read(r.Gradients)
		}
		mustNear(t, string(name)+": logits", logits[1], logits[0], 1e-4)
		mustNear(t, string(name)+": gradients", gradients[1], gradients[0], 1e-4)
	}
}

// A counter counts what it hands out as if it were F32.
type counter struct {
	tensor.Arena
	bytes int
}

func (c *counter) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	c.bytes += max(128, (4*rows*cols+127)/128*128)
	return c.Arena.Alloc(t, rows, cols)
}

func TestForecast(t *testing.T) {
	for i, s := range specs() {
		name, _ := json.Marshal(s)
		g := newGraph(uint64(i), 40, 20)
		m := newModel(t, s, 20)
		for _, sparse := range []bool{false, true} {
			r, roots := newRun(t, ref(), m, weights(m, 1)), []uint32{4, 5, 1, 9}
			arena := &counter{Arena: r.arena}
			p := m.NewPass(r.device, arena)
			p.Weights, p.Gradients, p.Key, p.Train = r.Weights, r.Gradients, r.Key, true
			bs := g.blocks(m, roots, 2)
			in := g.input(r.device, first(bs, roots), sparse)
			p.Backward(p.Forward(bs, in))

			size := nn.InputSize{Rows: len(in.Vertices), Sparse: sparse}
			if sparse {
				size.Entries = in.Sparse.Entries()
			}
			var sizes []nn.Size
			for _, b := range bs {
				sizes = append(sizes, nn.Size{Targets: b.Rows, Sources: b.Cols, Entries: b.Entries()})
			}
			// Relations that reach no target take nothing.
			idle := slices.ContainsFunc(bs, func(b sample.Block) bool { return slices.Contains(b.Idle, true) })
			if got, _ := m.Forecast(size, sizes); got < arena.bytes || got > arena.bytes && !idle {
				t.Errorf("%s, sparse %v: %d bytes were forecast, and %d taken", name, sparse, got, arena.bytes)
			}
		}
	}
}

// A step takes nothing of Go's heap.
func TestPassesAllocateNothing(t *testing.T) {
	device := dry.New(tensor.F32)
	arena := device.Arena()
	for i, s := range specs() {
		g := newGraph(uint64(i), 20, 10)
		m := newModel(t, s, 10)
		p := m.NewPass(device, arena)
		p.Weights, p.Gradients, p.Train = arena.Alloc(tensor.F32, 1, m.Size()), arena.Alloc(tensor.F32, 1, m.Size()), true
		roots := []uint32{4, 5}
		bs := g.blocks(m, roots, 2)
		in := g.input(device, first(bs, roots), i%2 == 0)
		o, err := nn.NewOptimizer(nn.OptimizerSpec{Kind: "adam"}, device, arena, m.Size())
		if err != nil {
			t.Fatal(err)
		}
		whole := g.block(g.all(), 0, m.Form(), true)
		stages := m.Stages()
		x, carry := device.Arena().Alloc(tensor.F32, g.n, 10), tensor.Matrix{}
		step := func() {
			arena.Reset()
			p.Backward(p.Forward(bs, in))
			o.Step(p.Weights, p.Gradients, 0.1)
			y, beside := x, carry
			for j := range stages {
				var block *sample.Block
				if stages[j].Hops > 0 {
					block = &whole
				}
				y, beside = p.Stage(j, block, nn.Input{Dense: x}, y, beside)
			}
		}
		if n := testing.AllocsPerRun(5, step); n > 0 {
			t.Errorf("%s: %v allocations a step", s.Model, n)
		}
	}
}

// Batches without roots, without edges or with vertices that nobody reaches are as
// good as any.
func TestEmptyBatches(t *testing.T) {
	device := cpu.New(2)
	defer device.Close()
	rows, kept := newArena(t, device), newArena(t, device)
	for i, s := range specs() {
		g := newGraph(uint64(i), 12, 5)
		m := newModel(t, s, 5)
		w := weights(m, 1)
		for _, roots := range [][]uint32{{}, {3}, {7, 11, 3}} {
			for _, r := range []*run{newRun(t, ref(), m, w), runIn(device, rows, kept, m, w)} {
				bs := g.blocks(m, roots, 2)
				in := g.input(r.device, first(bs, roots), i%2 == 0)
				if z := r.Forward(bs, in); z.Rows != len(roots) || z.Cols != classes {
					t.Errorf("%s: %d x %d logits for %d roots", s.Model, z.Rows, z.Cols, len(roots))
				}
				r.loss(bs, in, g.labelsOf(roots), true)
				if !r.device.Finite(r.Gradients) {
					t.Errorf("%s: roots %v have gradients that are not finite", s.Model, roots)
				}
			}
		}
	}
}
