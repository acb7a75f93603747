package build

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A memory is a source for tests. Every row of features is in rows, dense; nil: the
// source has none for that vertex.
type memory struct {
	meta    graph.Meta
	edges   graph.EdgeBatch
	rows    [][]float32
	order   []uint32 // in which rows are yielded; nil: ascending, in runs
	labels  []int32
	columns graph.Columns
	splits  [][]graph.Mark
	ids     graph.IDs
	batch   int
}

var _ graph.Source = (*memory)(nil)

func (m *memory) Meta() graph.Meta       { return m.meta }
func (m *memory) Labels() []int32        { return m.labels }
func (m *memory) Targets() graph.Columns { return m.columns }
func (m *memory) Splits() [][]graph.Mark { return m.splits }
func (m *memory) IDs() graph.IDs         { return m.ids }
func (m *memory) Notes() []string        { return []string{"made for a test"} }
func (m *memory) Close() error           { return nil }

func (m *memory) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	e := m.edges
	scratch := graph.EdgeBatch{}
	for len(e.Src) > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(m.batch, len(e.Src))
		scratch.Src = append(scratch.Src[:0], e.Src[:n]...)
		scratch.Dst = append(scratch.Dst[:0], e.Dst[:n]...)
		e.Src, e.Dst = e.Src[n:], e.Dst[n:]
		if m.meta.Weighted {
			scratch.Weights = append(scratch.Weights[:0], e.Weights[:n]...)
			e.Weights = e.Weights[n:]
		}
		if err := yield(scratch); err != nil {
			return err
		}
		// A batch is valid until yield returns, and not longer.
		for i := range n {
			scratch.Src[i], scratch.Dst[i] = 1<<31, 1<<31
		}
	}
	return nil
}

func (m *memory) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	order := m.order
	listed := order != nil
	if !listed {
		for v := range m.rows {
			order = append(order, uint32(v))
		}
	}
	for len(order) > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		f := graph.FeatureBatch{First: order[0], Indptr: []int64{0}}
		n := 0
		for n < min(m.batch, len(order)) && (n == 0 || m.rows[order[n]] != nil) {
			if row := m.rows[order[n]]; row == nil {
				break
			}
			v := order[n]
			n++
			if listed {
				f.Vertices = append(f.Vertices, v)
			}
			if !m.meta.Sparse {
				f.Dense = append(f.Dense, m.rows[v]...)
				continue
			}
			for column, value := range m.rows[v] {
				if value != 0 {
					f.Indices = append(f.Indices, uint32(column))
					f.Values = append(f.Values, value)
				}
			}
			f.Indptr = append(f.Indptr, int64(len(f.Indices)))
		}
		order = order[max(n, 1):]
		if n == 0 {
			continue
		}
		if !m.meta.Sparse {
			f.Indptr = nil
		}
		if err := yield(f); err != nil {
			return err
		}
		clear(f.Dense)
		clear(f.Values)
	}
	return nil
}

// A shape is what a random source is made of.
type shape struct {
	vertices                int
	edges                   int
	weighted                bool
	features                int
	density                 float64
	sparse, missing, listed bool
	classes, splits         int
	targets                 graph.Targets // classes are their columns
	names, numbers          bool
	hub                     bool // most edges lead to vertex 1
}

// source makes a source of that shape: with self-loops, with edges that stand
// twice, with vertices that have none, and with everything that may be missing
// missing here and there.
func (s shape) source(seed uint64) *memory {
	r := rand.New(rand.NewPCG(seed, 7))
	m := &memory{batch: 1 + r.IntN(50)}
	m.meta = graph.Meta{
		Format: "test", Vertices: uint32(s.vertices), Edges: uint64(s.edges), Weighted: s.weighted,
		Features: s.features, Sparse: s.sparse, Classes: s.classes, Targets: s.targets,
	}
	touched := max(1, s.vertices*4/5) // the rest is isolated
	for i := range s.edges {
		src, dst := uint32(r.IntN(touched)), uint32(r.IntN(touched))
		switch {
		case i > 0 && r.IntN(5) == 0:
			src, dst = m.edges.Src[i-1], m.edges.Dst[i-1]
		case i > 0 && r.IntN(8) == 0:
			src, dst = m.edges.Dst[i-1], m.edges.Src[i-1]
		case s.hub && r.IntN(3) > 0:
			dst = min(1, uint32(touched-1))
		}
		m.edges.Src, m.edges.Dst = append(m.edges.Src, src), append(m.edges.Dst, dst)
		if s.weighted {
			m.edges.Weights = append(m.edges.Weights, r.Float32()*1e3-300)
		}
	}
	if s.features > 0 {
		m.rows = make([][]float32, s.vertices)
		for v := range m.rows {
			if s.missing && r.IntN(4) == 0 {
				continue
			}
			m.rows[v] = make([]float32, s.features)
			for c := range m.rows[v] {
				if r.Float64() < s.density {
					m.rows[v][c] = float32(r.NormFloat64())
					m.meta.NonZeros++
				}
			}
		}
		if s.listed {
			for v := range s.vertices {
				if m.rows[v] != nil {
					m.order = append(m.order, uint32(v))
				}
			}
			r.Shuffle(len(m.order), func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
		}
	}
	switch s.targets {
	case graph.YesOrNo:
		for range s.vertices * s.classes {
			m.columns.YesOrNo = append(m.columns.YesOrNo, []uint8{0, 1, graph.Missing}[r.IntN(3)])
		}
	case graph.Numbers:
		for range s.vertices * s.classes {
			m.columns.Numbers = append(m.columns.Numbers, []float32{float32(math.NaN()), r.Float32() - 0.5}[r.IntN(2)])
		}
	}
	if s.classes > 0 && s.targets == graph.OneClass {
		for range s.vertices {
			m.labels = append(m.labels, int32(r.IntN(s.classes+1))-1)
		}
	}
	for range s.splits {
		marks := make([]graph.Mark, s.vertices)
		for v := range marks {
			marks[v] = graph.Mark(r.IntN(4))
		}
		m.splits = append(m.splits, marks)
	}
	switch {
	case s.names:
		m.ids.Strings = &graph.Strings{Offsets: []int64{0}}
		for v := range s.vertices {
			m.ids.Strings.Bytes = fmt.Appendf(m.ids.Strings.Bytes, "%s-%d", slices.Repeat([]byte("ü"), v%4), v)
			m.ids.Strings.Offsets = append(m.ids.Strings.Offsets, int64(len(m.ids.Strings.Bytes)))
		}
	case s.numbers:
		for v := range s.vertices {
			m.ids.Ints = append(m.ids.Ints, int64(v)*1e10-5)
		}
	}
	return m
}

// name is what the source calls a vertex.
func (m *memory) name(v int) string {
	switch {
	case m.ids.Strings != nil:
		return string(m.ids.Strings.Bytes[m.ids.Strings.Offsets[v]:m.ids.Strings.Offsets[v+1]])
	case m.ids.Ints != nil:
		return fmt.Sprint(m.ids.Ints[v])
	}
	return fmt.Sprint(v)
}
