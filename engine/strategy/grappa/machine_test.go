package grappa

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const columns, classes = 3, 3

// A machine computes gradients in float64.
type machine struct {
	device  *reference.Device
	pass    *nn.Pass
	arena   tensor.Arena
	x       []float64 // columns of each vertex
	labels  []int32
	targets []float64 // where the loss is linear: by how much each logit counts in it
	model   *nn.Model
	batch   sample.Batch
}

// newMachine has a model, with weights, features and labels from a seed. A linear loss
// is a sum of logits, each of which counts by a number of its own.
func newMachine(t testing.TB, spec nn.Spec, vertices int, linear bool, seed uint64) *machine {
	t.Helper()
	spec.Dropout, spec.Hidden = 0, 4
	spec.Resolve()
	m := &machine{device: reference.New()}
	var err error
	if m.model, err = nn.New(spec, columns, classes); err != nil {
		t.Fatal(err)
	}
	if m.arena, err = m.device.NewArena(0); err != nil {
		t.Fatal(err)
	}
	kept, err := m.device.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	m.pass = m.model.NewPass(m.device, m.arena)
	m.pass.Weights = kept.Alloc(tensor.F64, 1, m.model.Size())
	m.pass.Gradients = kept.Alloc(tensor.F64, 1, m.model.Size())
	r := rand.New(rand.NewPCG(seed, 2))
	w := make([]float64, m.model.Size())
	for i := range w {
		w[i] = r.NormFloat64()
	}
	m.device.Write(m.pass.Weights, w)
	for range vertices * columns {
		m.x = append(m.x, float64(float32(r.NormFloat64())))
	}
	for range vertices {
		m.labels = append(m.labels, int32(r.IntN(classes)))
	}
	if linear {
		for range vertices * classes {
			m.targets = append(m.targets, r.NormFloat64())
		}
	}
	return m
}

// gradient is that of the sum over roots, each counting by its weight (nil: 1).
func (m *machine) gradient(t testing.TB, s *sample.Sampler, roots []uint32, weigh func(blocks []sample.Block) []float64) []float64 {
	t.Helper()
	m.arena.Reset()
	m.device.Zero(m.pass.Gradients)
	to := make([]float64, m.model.Size())
	if len(roots) == 0 {
		return to
	}
	if err := s.Sample(t.Context(), &m.batch, 1, 1, roots); err != nil {
		t.Fatal(err)
	}
	sources := m.batch.Blocks[0].Vertices
	x := m.arena.Alloc(tensor.F64, len(sources), columns)
	for i, v := range sources {
		m.device.Write(x.RowRange(i, 1), m.x[columns*int(v):][:columns])
	}
	for i := range m.batch.Blocks {
		m.batch.Blocks[i].Transpose()
	}
	z := m.pass.Forward(m.batch.Blocks, nn.Input{Dense: x, Vertices: sources})
	labels := make([]int32, len(roots))
	for i, v := range roots {
		labels[i] = m.labels[v]
	}
	m.device.CrossEntropy(z, z, labels, 1)
	if m.targets != nil {
		for i, v := range roots {
			m.device.Write(z.RowRange(i, 1), m.targets[classes*int(v):][:classes])
		}
	}
	if w := weigh(m.batch.Blocks); w != nil {
		scale := m.arena.Alloc(tensor.F64, len(w), 1)
		m.device.Write(scale, w)
		m.device.ScaleRows(z, z, scale)
	}
	m.pass.Backward(z)
	m.device.Read(to, m.pass.Gradients)
	return to
}

// even is that all roots count the same.
func even([]sample.Block) []float64 { return nil }

func add(to []float64, scale float64, from []float64) {
	for i, x := range from {
		to[i] += scale * x
	}
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// off is how far a is from b, relative to b.
func off(a, b []float64) float64 {
	d := make([]float64, len(a))
	add(d, 1, a)
	add(d, -1, b)
	return math.Sqrt(dot(d, d) / dot(b, b))
}
