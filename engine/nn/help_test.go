package nn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A graph is small, weighted, and has isolated vertices.
type graph struct {
	n       int
	in      [][]int // in-neighbours of each vertex
	weight  [][]float64
	x       []float64 // n x features, a third of them 0
	columns int
	labels  []int32 // some -1
}

const classes = 3

func newGraph(seed uint64, n, columns int) *graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &graph{n: n, columns: columns, in: make([][]int, n), weight: make([][]float64, n)}
	for v := range n {
		if v%4 == 3 {
			continue // isolated, as far as it hears
		}
		for u := range n {
			if u != v && r.Float64() < 3/float64(n) {
				g.in[v] = append(g.in[v], u)
				g.weight[v] = append(g.weight[v], 0.5+r.Float64())
			}
		}
	}
	for range n * columns {
		x := 0.0
		if r.IntN(3) > 0 {
			x = float64(float32(r.NormFloat64()))
		}
		g.x = append(g.x, x)
	}
	for v := range n {
		label := int32(v % classes)
		if v%7 == 0 {
			label = -1
		}
		g.labels = append(g.labels, label)
	}
	return g
}

// degree is the sum of a vertex's in-edges' weights.
func (g *graph) degree(v int, f sample.Form) float64 {
	d := 0.0
	for _, w := range g.weight[v] {
		d += w
	}
	if f.SelfLoops {
		d++
	}
	return d
}

// inverse is 1 over the degree's root, 0 where there is none.
func (g *graph) inverse(v int, f sample.Form) float64 {
	if d := g.degree(v, f); d > 0 {
		return 1 / math.Sqrt(d)
	}
	return 0
}

// block is one hop: targets hear up to fanout neighbours each, 0 meaning all.
// sources are the targets first, or all vertices if whole.
func (g *graph) block(targets []uint32, fanout int, f sample.Form, whole bool) sample.Block {
	var b sample.Block
	b.Rows, b.Indptr = len(targets), []int64{0}
	place := map[uint32]int32{}
	add := func(v uint32) int32 {
		if _, known := place[v]; !known {
			place[v] = int32(len(b.Vertices))
			b.Vertices = append(b.Vertices, v)
		}
		return place[v]
	}
	if whole {
		for v := range g.n {
			add(uint32(v))
		}
		if len(targets) > 0 {
			b.Own = int(targets[0])
		}
	}
	for _, t := range targets {
		add(t)
	}
	for _, t := range targets {
		entry := func(u uint32, w float64) {
			b.Indices = append(b.Indices, add(u))
			if f.Weighting == sample.Symmetric {
				w *= g.inverse(int(t), f) * g.inverse(int(u), f)
			}
			if f.Weighting != sample.Ones {
				b.Values = append(b.Values, float32(w))
			}
			if f.Relations > 0 {
				b.Values = append(b.Values, float32(relationOf(int(t), int(u), f.Relations)))
			}
		}
		if f.SelfLoops {
			entry(t, 1)
		}
		drawn := len(g.in[t])
		if fanout > 0 {
			drawn = min(drawn, fanout)
		}
		for i := range drawn {
			entry(uint32(g.in[t][i]), g.weight[t][i]*float64(len(g.in[t]))/float64(drawn))
		}
		b.Indptr = append(b.Indptr, int64(len(b.Indices)))
	}
	b.Cols = len(b.Vertices)
	b.Transposed = transpose(&b.CSR)
	if f.Relations > 0 {
		b.Relate(f)
		b.Transpose()
		b.CSR.Transposed = transpose(&b.CSR)
	}
	return b
}

// relationOf returns the relation of an edge. Even and odd vertices are of two types.
func relationOf(target, source, relations int) int {
	return (target%2 + 2*((target/2+source)%2)) % relations
}

func transpose(g *tensor.CSR) *tensor.Transpose {
	t := &tensor.Transpose{Indptr: make([]int64, g.Cols+1)}
	for c := range g.Cols {
		for r := range g.Rows {
			for at := g.Indptr[r]; at < g.Indptr[r+1]; at++ {
				if int(g.Indices[at]) == c {
					t.Rows, t.Edges = append(t.Rows, int32(r)), append(t.Edges, int32(at-g.Indptr[0]))
				}
			}
		}
		t.Indptr[c+1] = int64(len(t.Rows))
	}
	return t
}

// blocks are those of a pass for these roots.
func (g *graph) blocks(m *nn.Model, roots []uint32, fanout int) []sample.Block {
	bs := make([]sample.Block, m.Hops())
	for i := m.Hops() - 1; i >= 0; i-- {
		bs[i] = g.block(roots, fanout, m.Form(), false)
		roots = bs[i].Vertices
	}
	return bs
}

// wholes are blocks over all vertices.
func (g *graph) wholes(m *nn.Model) []sample.Block {
	return slices.Repeat([]sample.Block{g.block(g.all(), 0, m.Form(), true)}, m.Hops())
}

func (g *graph) all() []uint32 {
	var vs []uint32
	for v := range g.n {
		vs = append(vs, uint32(v))
	}
	return vs
}

// input is the features of these vertices.
func (g *graph) input(d tensor.Device, vertices []uint32, sparse bool) nn.Input {
	in := nn.Input{Vertices: vertices}
	var dense []float64
	csr := &tensor.CSR{Rows: len(vertices), Cols: g.columns, Indptr: []int64{0}}
	for _, v := range vertices {
		for c, x := range g.x[int(v)*g.columns:][:g.columns] {
			dense = append(dense, x)
			if x != 0 {
				csr.Indices, csr.Values = append(csr.Indices, int32(c)), append(csr.Values, float32(x))
			}
		}
		csr.Indptr = append(csr.Indptr, int64(len(csr.Indices)))
	}
	if sparse {
		csr.Transposed = transpose(csr)
		in.Sparse = csr
		return in
	}
	in.Dense = tensor.Over(tensor.F64, len(vertices), g.columns, g.columns, unsafe.Pointer(unsafe.SliceData(dense)))
	if d.Type() == tensor.F32 {
		narrow := make([]float32, len(dense))
		for i, x := range dense {
			narrow[i] = float32(x)
		}
		in.Dense = tensor.OverF32(len(vertices), g.columns, narrow)
	}
	return in
}

// first is the vertices whose features a pass reads.
func first(bs []sample.Block, roots []uint32) []uint32 {
	if len(bs) == 0 {
		return roots
	}
	return bs[0].Vertices
}

// A run is a model with weights and gradients on a device.
type run struct {
	*nn.Model
	*nn.Pass
	device tensor.Device
	arena  tensor.Arena
}

func newModel(t testing.TB, s nn.Spec, columns int) *nn.Model {
	t.Helper()
	m, err := nn.New(s, columns, classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// weights are random everywhere, so that nothing stands where a function bends.
func weights(m *nn.Model, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 2))
	w := make([]float64, m.Size())
	for i := range w {
		w[i] = float64(float32(0.6 * r.NormFloat64()))
	}
	return w
}

func newRun(t testing.TB, d tensor.Device, m *nn.Model, w []float64) *run {
	t.Helper()
	return runIn(d, newArena(t, d), newArena(t, d), m, w)
}

func newArena(t testing.TB, d tensor.Device) tensor.Arena {
	t.Helper()
	a, err := d.NewArena(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// runIn is newRun in arenas that are used again.
func runIn(d tensor.Device, rows, kept tensor.Arena, m *nn.Model, w []float64) *run {
	rows.Reset()
	kept.Reset()
	r := &run{m, m.NewPass(d, rows), d, rows}
	r.Weights, r.Gradients = kept.Alloc(d.Type(), 1, m.Size()), kept.Alloc(d.Type(), 1, m.Size())
	d.Write(r.Weights, w)
	d.Zero(r.Gradients)
	r.Key, r.Train = keyed.New(5, keyed.Dropout).With(3), true
	return r
}

// loss does a forward and, with back, a backward.
func (r *run) loss(bs []sample.Block, in nn.Input, labels []int32, back bool) float64 {
	r.arena.Reset()
	z := r.Forward(bs, in)
	dz := tensor.Matrix{}
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

func (g *graph) labelsOf(vertices []uint32) []int32 {
	var l []int32
	for _, v := range vertices {
		l = append(l, g.labels[v])
	}
	return l
}

// near says whether two numbers agree.
func near(a, b, relative, absolute float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))+absolute
}

func mustNear(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers and not %d", what, len(got), len(want))
	}
	for i := range got {
		if !near(got[i], want[i], tolerance, tolerance) {
			t.Fatalf("%s: number %d is %v and not %v", what, i, got[i], want[i])
		}
	}
}

// specs are models of every kind with every option that changes what is computed.
func specs() []nn.Spec {
	var all []nn.Spec
	for _, base := range kinds() {
		for i := range 2 * 2 * 4 {
			s := base
			s.Residual = i&1 != 0
			s.Norm = []string{nn.NormNone, nn.NormLayer}[i>>1&1]
			s.Head = []string{nn.HeadNone, nn.HeadLinear, nn.HeadLinear, nn.HeadLinear}[i>>2]
			s.Jump = []string{nn.JumpNone, nn.JumpNone, nn.JumpCat, nn.JumpMax}[i>>2]
			switch s.Model {
			case "gcnii":
				if s.Head, s.Jump = nn.HeadLinear, nn.JumpNone; i >= 4 {
					continue
				}
			case "rgcn", "hetero:sage", "hetero:gat", "hetero:gcn", "hetero:gin":
				if s.Jump = nn.JumpNone; i >= 8 {
					continue
				}
			case "resgcn":
				if s.Head, s.Jump, s.Norm = nn.HeadLinear, nn.JumpNone, nn.NormLayer; i >= 1 {
					continue
				}
			}
			all = append(all, s)
		}
	}
	return all
}

func kinds() []nn.Spec {
	var all []nn.Spec
	add := func(model string, change func(s *nn.Spec)) {
		s := nn.Defaults(model)
		s.Layers, s.Hidden = 2, 4
		if change != nil {
			change(&s)
		}
		all = append(all, s)
	}
	for _, a := range []string{"mean", "max", "gcn"} {
		add("sage", func(s *nn.Spec) { s.Aggregator = a })
	}
	for _, version := range []int{1, 2} {
		for _, heads := range []int{1, 3} {
			add("gat", func(s *nn.Spec) { s.Version, s.Heads, s.OutHeads, s.Hidden = version, 2, heads, 2 })
		}
	}
	for _, m := range []string{"gcn", "gin", "mlp", "contrast"} {
		add(m, nil)
	}
	for _, bases := range []int{0, 2} {
		add("rgcn", func(s *nn.Spec) { s.Relations, s.Bases = 4, bases })
	}
	for i, a := range []string{"mean", "max"} {
		add("hetero:sage", func(s *nn.Spec) { s.Aggregator, s.Relations, s.Ends = a, 4, []string{"0,1,0,1", ""}[i] })
	}
	for _, version := range []int{1, 2} {
		add("hetero:gat", func(s *nn.Spec) {
			s.Version, s.Heads, s.OutHeads, s.Hidden, s.Across = version, 2, version, 2, nn.AcrossMean
			s.Relations, s.Ends = 4, "3,0,3,0"
		})
	}
	for i, across := range []string{nn.AcrossSum, nn.AcrossAttend} {
		add("hetero:gcn", func(s *nn.Spec) { s.Relations, s.Ends, s.Across = 4, []string{"0,1,0,1", ""}[i], across })
	}
	add("hetero:gin", func(s *nn.Spec) { s.Relations, s.Ends = 4, "0,1,0,1" })
	add("hetero:sage", func(s *nn.Spec) { s.Relations, s.Ends, s.Across = 4, "0,1,0,1", nn.AcrossAttend })
	add("hetero:gat", func(s *nn.Spec) { s.Heads, s.OutHeads, s.Hidden, s.Relations, s.Across = 2, 2, 2, 4, nn.AcrossAttend })
	add("gcnii", func(s *nn.Spec) { s.Layers = 3 })
	add("resgcn", func(s *nn.Spec) { s.Layers = 3 })
	return all
}

func ref() tensor.Device { return reference.New() }
