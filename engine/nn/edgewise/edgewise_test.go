package edgewise_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/edgewise"
	"github.com/hopmesh/hopmesh/engine/nn/nntest"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

const (
	vertices = 11
	wide     = 2 // nntest.Columns of edges
)

// newWorld returns a graph with weights and features of edges, where vertex 3 has no in-edges, and 5
// one from itself.
func newWorld(seed uint64) *nntest.Graph {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &graph.Shard{Shards: 1, Vertices: vertices, Total: vertices, Features: nntest.Columns, Classes: nntest.Classes, Indptr: []int64{0}}
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
	w := &nntest.Graph{Shard: s}
	for range vertices * nntest.Columns {
		x := 0.0
		if r.IntN(3) > 0 {
			x = float64(float32(r.NormFloat64()))
		}
		w.X = append(w.X, x)
	}
	return w
}

// sparse returns the features of these vertices as a sparse matrix.
func sparse(g *nntest.Graph, of []uint32) nn.Input {
	back := &tensor.Transpose{Indptr: []int64{0}}
	rows := &tensor.CSR{Rows: len(of), Cols: nntest.Columns, Indptr: []int64{0}, Transposed: back}
	for _, v := range of {
		for c, x := range g.X[int(v)*nntest.Columns:][:nntest.Columns] {
			if x != 0 {
				rows.Indices, rows.Values = append(rows.Indices, int32(c)), append(rows.Values, float32(x))
			}
		}
		rows.Indptr = append(rows.Indptr, int64(len(rows.Indices)))
	}
	for c := range nntest.Columns {
		for r := range rows.Rows {
			for e := rows.Indptr[r]; e < rows.Indptr[r+1]; e++ {
				if int(rows.Indices[e]) == c {
					back.Rows, back.Edges = append(back.Rows, int32(r)), append(back.Edges, int32(e))
				}
			}
		}
		back.Indptr = append(back.Indptr, int64(len(back.Rows)))
	}
	return nn.Input{Vertices: of, Sparse: rows}
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

// TestGradients compares every gradient with the slope of the loss, in float64.
func TestGradients(t *testing.T) {
	roots := []uint32{4, 3, 1, 7, 5}
	for name, s := range models() {
		for i := range 8 {
			s, mostlyZeros, fanout := s, i&1 != 0, []int{0, 2}[i>>1&1]
			if i&4 != 0 {
				s.Dropout, s.InputDropout, s.AttentionDropout = 0.3, 0.2, 0.3
			}
			if s.Layers = 1 + i%3; s.Residual {
				s.Layers = 2
			}
			t.Run(fmt.Sprintf("%s,%d", name, i), func(t *testing.T) {
				t.Parallel()
				world := newWorld(uint64(i))
				m, w := nntest.NewModel(t, s)
				b := world.Batch(t, m, fanout, roots)
				r := nntest.NewRun(t, reference.New(), m, w)
				in, labels := world.Input(r.Device, b.Blocks[0].Vertices), nntest.LabelsOf(roots)
				if mostlyZeros {
					in = sparse(world, b.Blocks[0].Vertices)
				}
				r.Loss(b, in, labels, true)
				got := r.Read(r.Gradients)
				if !slices.ContainsFunc(got, func(x float64) bool { return x != 0 }) {
					t.Error("all gradients are 0")
				}
				r.Slopes(t, m.Params(), w, got, func() float64 { return r.Loss(b, in, labels, false) })
			})
		}
	}
}

// TestDevices compares the processor, and a device with memory of its own, with float64.
func TestDevices(t *testing.T) {
	roots := []uint32{4, 3, 1, 7, 5}
	for name, s := range models() {
		s.Dropout, s.AttentionDropout = 0.3, 0.3
		t.Run(name, func(t *testing.T) { newWorld(2).SameOnDevices(t, s, roots) })
	}
}

// TestForecast compares what passes take of an arena with what is forecast of the sizes of blocks.
func TestForecast(t *testing.T) {
	roots := []uint32{0, 2, 4, 6, 8, 9}
	for name, s := range models() {
		t.Run(name, func(t *testing.T) { newWorld(3).TakesWhatIsForecast(t, s, roots) })
	}
}

// TestAttentionDropsTheSameEdges compares gat where features of edges count nothing with gat that
// reads none: the same shares are dropped.
func TestAttentionDropsTheSameEdges(t *testing.T) {
	s, roots := models()["gat"], []uint32{4, 3, 1, 7, 5}
	s.Dropout, s.AttentionDropout = 0.2, 0.4
	world := newWorld(5)
	m, w := nntest.NewModel(t, s)
	bare := s
	bare.EdgeFeatures = 0
	plain, plainW := nntest.NewModel(t, bare)
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
		b := world.Batch(t, m, 2, roots)
		r := nntest.NewRun(t, reference.New(), m, w)
		return r.Read(r.Forward(b.Blocks, world.Input(r.Device, b.Blocks[0].Vertices)))
	}
	got, want := logits(m, w), logits(plain, plainW)
	for i := range want {
		if !nntest.Near(got[i], want[i], 1e-12, 1e-12) {
			t.Fatalf("logit %d is %v, and %v without features of edges", i, got[i], want[i])
		}
	}
}
