// Package nntest runs single steps of models in the tests of packages that add layers: blocks drawn
// from a small graph, gradients beside slopes, and the same step on all devices.
package nntest

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// Columns and Classes are those of the features and of the labels of graphs.
const (
	Columns = 3
	Classes = 3
)

// A Graph is one shard, and the features of its vertices.
type Graph struct {
	Shard *graph.Shard
	X     []float64
}

// All returns its vertices.
func (g *Graph) All() (of []uint32) {
	for v := range g.Shard.Total {
		of = append(of, v)
	}
	return of
}

// Sampler returns a sampler of as many neighbours at each hop of the model; 0: of all.
func (g *Graph) Sampler(t testing.TB, m *nn.Model, fanout int) *sample.Sampler {
	t.Helper()
	topology, err := sample.NewTopology([]*graph.Shard{g.Shard})
	if err != nil {
		t.Fatal(err)
	}
	fanouts := make([]int, m.Hops())
	for i := range fanouts {
		fanouts[i] = fanout
	}
	return sample.New(topology, sample.Options{Fanouts: fanouts, Form: m.Form(), Seed: 4})
}

// Batch draws the blocks of some seed vertices.
func (g *Graph) Batch(t testing.TB, m *nn.Model, fanout int, roots []uint32) *sample.Batch {
	t.Helper()
	b := new(sample.Batch)
	if err := g.Sampler(t, m, fanout).Sample(t.Context(), b, 1, 2, roots); err != nil {
		t.Fatal(err)
	}
	for i := range b.Blocks {
		b.Blocks[i].Transpose()
	}
	return b
}

// Input returns the features of these vertices, in the host's memory.
func (g *Graph) Input(d tensor.Device, of []uint32) nn.Input {
	in, wide, narrow := nn.Input{Vertices: of}, []float64{}, []float32{}
	for _, v := range of {
		for _, x := range g.X[int(v)*Columns:][:Columns] {
			wide, narrow = append(wide, x), append(narrow, float32(x))
		}
	}
	if in.Dense = tensor.OverF32(len(of), Columns, narrow); d.Type() == tensor.F64 {
		in.Dense = tensor.Over(tensor.F64, len(of), Columns, Columns, unsafe.Pointer(unsafe.SliceData(wide)))
	}
	return in
}

// LabelsOf returns labels of these vertices.
func LabelsOf(of []uint32) (labels []int32) {
	for _, v := range of {
		labels = append(labels, int32(v%Classes))
	}
	return labels
}

// NewModel returns a model and weights for it.
func NewModel(t testing.TB, s nn.Spec) (*nn.Model, []float64) {
	t.Helper()
	m, err := nn.New(s, Columns, Classes)
	if err != nil {
		t.Fatal(err)
	}
	r, w := rand.New(rand.NewPCG(8, 2)), make([]float64, m.Size())
	for i := range w {
		w[i] = float64(float32(0.6 * r.NormFloat64()))
	}
	return m, w
}

// A Run is a model on a device.
type Run struct {
	*nn.Pass
	Device tensor.Device
	arena  tensor.Arena
}

// NewRun returns a run that trains with these weights. Its memory is freed when the test ends.
func NewRun(t testing.TB, d tensor.Device, m *nn.Model, w []float64) *Run {
	t.Helper()
	var arenas [2]tensor.Arena
	for i := range arenas {
		a, err := d.NewArena(1 << 16)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		arenas[i] = a
	}
	r := &Run{m.NewPass(d, arenas[0]), d, arenas[0]}
	r.Weights, r.Gradients = arenas[1].Alloc(d.Type(), 1, m.Size()), arenas[1].Alloc(d.Type(), 1, m.Size())
	d.Write(r.Weights, w)
	d.Zero(r.Gradients)
	r.Key, r.Train = keyed.New(5, keyed.Dropout).With(3), true
	return r
}

// Loss computes a step, and with back its gradients.
func (r *Run) Loss(b *sample.Batch, in nn.Input, labels []int32, back bool) float64 {
	r.arena.Reset()
	z, dz := r.Forward(b.Blocks, in), tensor.Matrix{}
	if back {
		dz = r.arena.Alloc(r.Device.Type(), z.Rows, z.Cols)
	}
	loss, _ := r.Device.CrossEntropy(dz, z, labels, 1)
	if back {
		r.Backward(dz)
	}
	return loss
}

// Read returns the numbers of a matrix.
func (r *Run) Read(m tensor.Matrix) []float64 {
	x := make([]float64, m.Rows*m.Cols)
	r.Device.Read(x, m)
	return x
}

// Near reports whether two numbers differ by no more than a part of the larger one and a number.
func Near(a, b, relative, absolute float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))+absolute
}

// Slope returns that of the loss by a number that is x, and whether a gradient is near it. A smaller
// distance stays on one side of where ReLU bends.
func Slope(gradient, x float64, loss func(x float64) float64) (want float64, ok bool) {
	for _, h := range []float64{1e-5, 1e-6, 1e-7} {
		want = (loss(x+h) - loss(x-h)) / (2 * h)
		if Near(gradient, want, 1e-6, 1e-8) {
			return want, true
		}
	}
	return want, false
}

// Slopes compares the gradient of each weight with the slope of the loss, which is that of a step
// with the weights of the run.
func (r *Run) Slopes(t testing.TB, params []nn.Param, w, gradients []float64, loss func() float64) {
	t.Helper()
	for _, p := range params {
		for j := p.Offset; j < p.Offset+p.Rows*p.Cols; j++ {
			x := w[j]
			want, ok := Slope(gradients[j], x, func(x float64) float64 {
				w[j] = x
				r.Device.Write(r.Weights, w)
				return loss()
			})
			if w[j] = x; !ok {
				t.Fatalf("%s[%d]: gradient %v, slope %v", p.Name, j-p.Offset, gradients[j], want)
			}
		}
	}
	r.Device.Write(r.Weights, w)
}

// SameOnDevices compares the gradients of a step on the processor, and on a device with memory of its
// own, with those in float64.
func (g *Graph) SameOnDevices(t testing.TB, s nn.Spec, roots []uint32) {
	t.Helper()
	m, w := NewModel(t, s)
	b := g.Batch(t, m, 2, roots)
	gradients := func(d tensor.Device) []float64 {
		r, in := NewRun(t, d, m, w), g.Input(d, b.Blocks[0].Vertices)
		if d, is := d.(tensor.Foreign); is {
			a, err := d.NewArena(1 << 12)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			host := in.Dense
			in.Dense = a.Alloc(tensor.F32, host.Rows, host.Cols)
			d.Write32(in.Dense, host.F32())
		}
		r.Loss(b, in, LabelsOf(roots), true)
		return r.Read(r.Gradients)
	}
	want, one, more, away := gradients(reference.New()), gradients(cpu.New(1)), gradients(cpu.New(3)), gradients(foreign.New(2))
	for i, x := range want {
		if !Near(one[i], x, 1e-3, 1e-4) {
			t.Errorf("%+v: gradient %d is %v on the processor, and %v in float64", s, i, one[i], x)
		}
		if one[i] != more[i] || one[i] != away[i] {
			t.Errorf("%+v: gradient %d is %v by one thread, %v by three, and %v elsewhere", s, i, one[i], more[i], away[i])
		}
	}
}

// TakesWhatIsForecast compares what a step takes of memory with what is forecast of the sizes of its
// blocks.
func (g *Graph) TakesWhatIsForecast(t testing.TB, s nn.Spec, roots []uint32) {
	t.Helper()
	m, _ := NewModel(t, s)
	b := g.Batch(t, m, 2, roots)
	var sizes []nn.Size
	for i := range b.Blocks {
		sizes = append(sizes, nn.Size{Targets: b.Blocks[i].Rows, Sources: b.Blocks[i].Cols, Entries: b.Blocks[i].Entries()})
	}
	device := dry.New(tensor.F32)
	arena := device.Arena()
	p := m.NewPass(device, arena)
	p.Weights, p.Train = tensor.OverF32(1, m.Size(), make([]float32, m.Size())), true
	p.Gradients = p.Weights
	p.Backward(p.Forward(b.Blocks, g.Input(device, b.Blocks[0].Vertices)))
	got, beside := m.Forecast(nn.InputSize{Rows: b.Blocks[0].Cols}, sizes)
	if got != arena.Peak() || got == 0 || beside < device.Beside() {
		t.Errorf("%+v: %d and %d bytes are forecast, and %d and %d are taken", s, got, beside, arena.Peak(), device.Beside())
	}
}
