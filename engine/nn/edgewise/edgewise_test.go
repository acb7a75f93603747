package edgewise_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/edgewise"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const (
	vertices = 11
	columns  = 3 // of vertices
	wide     = 2 // of edges
	classes  = 3
)

// world is a graph with weights and features of edges, where vertex 3 has no in-edges, and 5 one
// from itself.
type world struct {
	shard *graph.Shard
	x     []float64
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &graph.Shard{Shards: 1, Vertices: vertices, Total: vertices, Features: columns, Classes: classes, Indptr: []int64{0}}
	s.EdgeRows.Columns = wide
	for v := range vertices {
		for u := range vertices {
			if v != 3 && (u == v && v == 5 || u != v && r.IntN(3) == 0) {
				s.Indices, s.Weights = append(s.Indices, int32(u)), append(s.Weights, 0.5+r.Float32())
				for range wide {
					s.EdgeRows.F32 = append(s.EdgeRows.F32, float32(r.NormFloat64()))
				}
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	w := &world{shard: s}
	for range vertices * columns {
		x := 0.0
		if r.IntN(3) > 0 {
			x = float64(float32(r.NormFloat64()))
		}
		w.x = append(w.x, x)
	}
	return w
}

// batch draws the blocks of some seed vertices.
func (w *world) batch(t testing.TB, m *nn.Model, fanout int, roots []uint32) *sample.Batch {
	t.Helper()
	topology, err := sample.NewTopology([]*graph.Shard{w.shard})
	if err != nil {
		t.Fatal(err)
	}
	fanouts := make([]int, m.Hops())
	for i := range fanouts {
		fanouts[i] = fanout
	}
	b := new(sample.Batch)
	if err := sample.New(topology, sample.Options{Fanouts: fanouts, Form: m.Form(), Seed: 4}).Sample(t.Context(), b, 1, 2, roots); err != nil {
		t.Fatal(err)
	}
	for i := range b.Blocks {
		b.Blocks[i].Transpose()
	}
	return b
}

// input is the features of these vertices.
func (w *world) input(d tensor.Device, of []uint32, sparse bool) nn.Input {
	in, wide, narrow := nn.Input{Vertices: of}, []float64{}, []float32{}
	rows := &tensor.CSR{Rows: len(of), Cols: columns, Indptr: []int64{0}, Transposed: &tensor.Transpose{Indptr: []int64{0}}}
	for _, v := range of {
		for c, x := range w.x[int(v)*columns:][:columns] {
			if wide, narrow = append(wide, x), append(narrow, float32(x)); x != 0 {
				rows.Indices, rows.Values = append(rows.Indices, int32(c)), append(rows.Values, float32(x))
			}
		}
		rows.Indptr = append(rows.Indptr, int64(len(rows.Indices)))
	}
	for c := range columns {
		back := rows.Transposed
		for r := range rows.Rows {
			for e := rows.Indptr[r]; e < rows.Indptr[r+1]; e++ {
				if int(rows.Indices[e]) == c {
					back.Rows, back.Edges = append(back.Rows, int32(r)), append(back.Edges, int32(e))
				}
			}
		}
		back.Indptr = append(back.Indptr, int64(len(back.Rows)))
	}
	switch {
	case sparse:
		in.Sparse = rows
	case d.Type() == tensor.F64:
		in.Dense = tensor.Over(tensor.F64, len(of), columns, columns, unsafe.Pointer(unsafe.SliceData(wide)))
	default:
		in.Dense = tensor.OverF32(len(of), columns, narrow)
	}
	return in
}

func labelsOf(of []uint32) (labels []int32) {
	for _, v := range of {
		labels = append(labels, int32(v%classes))
	}
	return labels
}

// models are all that this package computes, with what changes it.
func models() map[string]nn.Spec {
	all := map[string]nn.Spec{}
	add := func(name, model string, change func(s *nn.Spec)) {
		s := nn.Defaults(model)
		s.Hidden, s.Dropout, s.InputDropout, s.AttentionDropout = 4, 0, 0, 0
		s.TellEdges(wide)
		if change != nil {
			change(&s)
		}
		all[name] = s
	}
	add("gin", "gin", nil)
	add("gin with self-loops", "gin", func(s *nn.Spec) { s.SelfLoops = nn.LoopsOn })
	add("gin with a head", "gin", func(s *nn.Spec) { s.Head, s.Residual = nn.HeadLinear, true })
	add("mpnn", "mpnn", nil)
	add("mpnn by sums", "mpnn", func(s *nn.Spec) { s.Aggregator = "sum" })
	add("mpnn without features of edges", "mpnn", func(s *nn.Spec) { s.Edges, s.EdgeFeatures = nn.LoopsOff, 0 })
	add("gat", "gat", func(s *nn.Spec) { s.Hidden, s.Heads, s.OutHeads = 2, 3, 2 })
	add("gat with one head", "gat", func(s *nn.Spec) { s.Hidden, s.Heads, s.Head = 4, 1, nn.HeadLinear })
	add("gat without self-loops", "gat", func(s *nn.Spec) { s.Hidden, s.Heads, s.SelfLoops = 2, 2, nn.LoopsOff })
	return all
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

// TestGradients compares every gradient with the slope of the loss, in float64.
func TestGradients(t *testing.T) {
	roots := []uint32{4, 3, 1, 7, 5}
	for name, s := range models() {
		for i := range 8 {
			s, sparse, fanout := s, i&1 != 0, []int{0, 2}[i>>1&1]
			if i&4 != 0 {
				s.Dropout, s.InputDropout, s.AttentionDropout = 0.3, 0.2, 0.3
			}
			if s.Layers = 1 + i%3; s.Residual {
				s.Layers = 2
			}
			t.Run(fmt.Sprintf("%s,%d", name, i), func(t *testing.T) {
				t.Parallel()
				world := newWorld(uint64(i))
				m, w := newModel(t, s)
				b := world.batch(t, m, fanout, roots)
				r := newRun(t, reference.New(), m, w)
				in, labels := world.input(r.device, b.Blocks[0].Vertices, sparse), labelsOf(roots)
				r.loss(b, in, labels, true)
				got := r.read(r.Gradients)
				seen := 0.0
				for _, p := range m.Params() {
					for j := p.Offset; j < p.Offset+p.Rows*p.Cols; j++ {
						seen += got[j] * got[j]
						ok, want := false, 0.0
						for _, h := range []float64{1e-5, 1e-6, 1e-7} { // a smaller one stays on one side of where ReLU bends
							x := w[j]
							at := func(x float64) float64 {
								w[j] = x
								r.device.Write(r.Weights, w)
								return r.loss(b, in, labels, false)
							}
							want = (at(x+h) - at(x-h)) / (2 * h)
							w[j] = x
							if ok = near(got[j], want, 1e-6, 1e-8); ok {
								break
							}
						}
						if !ok {
							t.Fatalf("%s[%d]: gradient %v, slope %v", p.Name, j-p.Offset, got[j], want)
						}
					}
				}
				if seen == 0 {
					t.Error("all gradients are 0")
				}
			})
		}
	}
}

// TestDevices compares the processor, and a device with memory of its own, with float64.
func TestDevices(t *testing.T) {
	roots := []uint32{4, 3, 1, 7, 5}
	for name, s := range models() {
		s.Dropout, s.AttentionDropout = 0.3, 0.3
		world := newWorld(2)
		m, w := newModel(t, s)
		b := world.batch(t, m, 2, roots)
		gradients := func(d tensor.Device) []float64 {
			r, in := newRun(t, d, m, w), world.input(d, b.Blocks[0].Vertices, false)
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
			r.loss(b, in, labelsOf(roots), true)
			return r.read(r.Gradients)
		}
		want, one, more, away := gradients(reference.New()), gradients(cpu.New(1)), gradients(cpu.New(3)), gradients(foreign.New(2))
		for i, x := range want {
			if !near(one[i], x, 1e-3, 1e-4) {
				t.Errorf("%s: gradient %d is %v on the processor, and %v in float64", name, i, one[i], x)
			}
			if one[i] != more[i] || one[i] != away[i] {
				t.Errorf("%s: gradient %d is %v by one thread, %v by three, and %v elsewhere", name, i, one[i], more[i], away[i])
			}
		}
	}
}

// TestForecast compares what passes take of an arena with what is forecast of the sizes of blocks.
func TestForecast(t *testing.T) {
	roots := []uint32{0, 2, 4, 6, 8, 9}
	for name, s := range models() {
		world := newWorld(3)
		m, _ := newModel(t, s)
		b := world.batch(t, m, 2, roots)
		var sizes []nn.Size
		for i := range b.Blocks {
			sizes = append(sizes, nn.Size{Targets: b.Blocks[i].Rows, Sources: b.Blocks[i].Cols, Entries: b.Blocks[i].Entries()})
		}
		device := dry.New(tensor.F32)
		arena := device.Arena()
		p := m.NewPass(device, arena)
		row := make([]float32, m.Size())
		p.Weights, p.Train = tensor.OverF32(1, m.Size(), row), true
		p.Gradients = p.Weights
		p.Backward(p.Forward(b.Blocks, world.input(device, b.Blocks[0].Vertices, false)))
		if got, _ := m.Forecast(nn.InputSize{Rows: b.Blocks[0].Cols}, sizes); got != arena.Peak() || got == 0 {
			t.Errorf("%s: %d bytes are forecast, and %d are taken", name, got, arena.Peak())
		}
	}
}

// TestAttentionDropsTheSameEdges compares gat where features of edges count nothing with gat that
// reads none: the same shares are dropped.
func TestAttentionDropsTheSameEdges(t *testing.T) {
	s, roots := models()["gat"], []uint32{4, 3, 1, 7, 5}
	s.Dropout, s.AttentionDropout = 0.2, 0.4
	world := newWorld(5)
	m, w := newModel(t, s)
	bare := s
	bare.EdgeFeatures = 0
	plain, plainW := newModel(t, bare)
	for _, p := range plain.Params() {
		for _, q := range m.Params() {
			if p.Name == q.Name {
				copy(plainW[p.Offset:], w[q.Offset:q.Offset+q.Rows*q.Cols])
			}
		}
	}
	for _, p := range m.Params() {
		if strings.HasSuffix(p.Name, "edges.weight") {
			clear(w[p.Offset:][:p.Rows*p.Cols])
		}
	}
	logits := func(m *nn.Model, w []float64) []float64 {
		b := world.batch(t, m, 2, roots)
		r := newRun(t, reference.New(), m, w)
		return r.read(r.Forward(b.Blocks, world.input(r.device, b.Blocks[0].Vertices, false)))
	}
	got, want := logits(m, w), logits(plain, plainW)
	for i := range want {
		if !near(got[i], want[i], 1e-12, 1e-12) {
			t.Fatalf("logit %d is %v, and %v without features of edges", i, got[i], want[i])
		}
	}
}
