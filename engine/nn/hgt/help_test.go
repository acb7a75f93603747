package hgt_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	vertices = 12
	columns  = 3
	classes  = 3
)

// The vertices of each type follow one another in turns of five: two papers, two authors, a venue.
var typeOf = [5]int{0, 1, 0, 1, 2}

// Relations lead between types: two from authors to papers, and one each from papers to papers, to
// authors and to venues. No edge is of the last one.
var (
	begins = []int{1, 1, 0, 0, 0, 2}
	closes = []int{0, 0, 0, 1, 2, 1}
)

const (
	starts = "1,1,0,0,0,2"
	ends   = "0,0,0,1,2,1"
)

// world is a graph with types, where vertices 3 and 7 have no in-edges, and x the features.
type world struct {
	shard *graph.Shard
	x     []float64
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &graph.Shard{Shards: 1, Vertices: vertices, Total: vertices, Features: columns, Classes: classes, Indptr: []int64{0}}
	s.Related = &graph.Related{Count: len(begins)}
	for v := range vertices {
		for u := range vertices {
			for relation := range len(begins) - 1 {
				fits := begins[relation] == typeOf[u%5] && closes[relation] == typeOf[v%5]
				if fits && v != 3 && v != 7 && r.IntN(3) > 0 {
					s.Indices, s.Related.Of = append(s.Indices, int32(u)), append(s.Related.Of, float32(relation))
				}
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	w := &world{shard: s}
	for range vertices * columns {
		w.x = append(w.x, float64(float32(r.NormFloat64())))
	}
	return w
}

func (w *world) sampler(t testing.TB, m *nn.Model, fanout int) *sample.Sampler {
	t.Helper()
	topology, err := sample.NewTopology([]*graph.Shard{w.shard})
	if err != nil {
		t.Fatal(err)
	}
	fanouts := make([]int, m.Hops())
	for i := range fanouts {
		fanouts[i] = fanout
	}
	return sample.New(topology, sample.Options{Fanouts: fanouts, Form: m.Form(), Seed: 4})
}

// batch draws the blocks of some seed vertices.
func (w *world) batch(t testing.TB, m *nn.Model, fanout int, roots []uint32) *sample.Batch {
	t.Helper()
	b := new(sample.Batch)
	if err := w.sampler(t, m, fanout).Sample(t.Context(), b, 1, 2, roots); err != nil {
		t.Fatal(err)
	}
	for i := range b.Blocks {
		b.Blocks[i].Transpose()
	}
	return b
}

// input is the features of these vertices.
func (w *world) input(d tensor.Device, of []uint32) nn.Input {
	in, wide, narrow := nn.Input{Vertices: of}, []float64{}, []float32{}
	for _, v := range of {
		for _, x := range w.x[int(v)*columns:][:columns] {
			wide, narrow = append(wide, x), append(narrow, float32(x))
		}
	}
	if in.Dense = tensor.OverF32(len(of), columns, narrow); d.Type() == tensor.F64 {
		in.Dense = tensor.Over(tensor.F64, len(of), columns, columns, unsafe.Pointer(unsafe.SliceData(wide)))
	}
	return in
}

func all() (of []uint32) {
	for v := range vertices {
		of = append(of, uint32(v))
	}
	return of
}

func labelsOf(of []uint32) (labels []int32) {
	for _, v := range of {
		labels = append(labels, int32(v%classes))
	}
	return labels
}

// models are what changes the arithmetic.
func models() map[string]nn.Spec {
	list := map[string]nn.Spec{}
	add := func(name string, change func(s *nn.Spec)) {
		s := nn.Defaults("hgt")
		s.Hidden, s.Heads, s.Norm, s.Dropout = 6, 2, nn.NormNone, 0
		s.Tell(len(begins), ends)
		s.TellStarts(starts)
		change(&s)
		list[name] = s
	}
	add("two heads", func(*nn.Spec) {})
	add("one head", func(s *nn.Spec) { s.Heads, s.Norm = 1, nn.NormLayer })
	add("a column for each head", func(s *nn.Spec) { s.Heads, s.Residual = 6, true })
	add("one type", func(s *nn.Spec) { s.Ends, s.Starts = "", "" })
	return list
}

type run struct {
	*nn.Model
	*nn.Pass
	device tensor.Device
	arena  tensor.Arena
}

func newRun(t testing.TB, d tensor.Device, m *nn.Model, w []float64) *run {
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
	r := &run{m, m.NewPass(d, arenas[0]), d, arenas[0]}
	r.Weights, r.Gradients = arenas[1].Alloc(d.Type(), 1, m.Size()), arenas[1].Alloc(d.Type(), 1, m.Size())
	d.Write(r.Weights, w)
	d.Zero(r.Gradients)
	r.Key, r.Train = keyed.New(5, keyed.Dropout).With(3), true
	return r
}

func (r *run) loss(b *sample.Batch, in nn.Input, labels []int32, back bool) float64 {
	r.arena.Reset()
	z, dz := r.Forward(b.Blocks, in), tensor.Matrix{}
	if back {
		dz = r.arena.Alloc(r.device.Type(), z.Rows, z.Cols)
	}
	loss, _ := r.device.CrossEntropy(dz, z, labels, 1)
	if back {
		r.Backward(dz)
	}
	return loss
}

func (r *run) read(m tensor.Matrix) []float64 {
	x := make([]float64, m.Rows*m.Cols)
	r.device.Read(x, m)
	return x
}

func newModel(t testing.TB, s nn.Spec) (*nn.Model, []float64) {
	t.Helper()
	m, err := nn.New(s, columns, classes)
	if err != nil {
		t.Fatal(err)
	}
	r, w := rand.New(rand.NewPCG(8, 2)), make([]float64, m.Size())
	for i := range w {
		w[i] = float64(float32(0.6 * r.NormFloat64()))
	}
	return m, w
}

func near(a, b, relative, absolute float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))+absolute
}
