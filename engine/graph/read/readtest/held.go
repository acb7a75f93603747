// Package readtest helps to test readers of graphs: it reads a source through and
// checks what every source must keep, and writes small files to read. No product code
// imports it.
package readtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// An Opener opens a graph of some format.
type Opener func(ctx context.Context, path string, o source.Options) (graph.Source, error)

// Held is a source read through, as a test can look at it.
type Held struct {
	Meta     graph.Meta
	Edges    [][2]uint32
	Weights  []float32
	Rows     []float32         // features of edges
	Features map[uint32][]Cell // without zeros
	Labels   []int32
	Targets  graph.Columns
	Splits   [][]graph.Mark
	Notes    []string
}

// A Cell is a feature's column and its value.
type Cell [2]float32

// Hold reads a source through, and checks what every source must keep.
func Hold(ctx context.Context, s graph.Source) (*Held, error) {
	h := &Held{Meta: s.Meta(), Labels: s.Labels(), Targets: s.Targets(), Splits: s.Splits(), Notes: s.Notes(), Features: map[uint32][]Cell{}}
	n := h.Meta.Vertices
	if err := s.Edges(ctx, func(b graph.EdgeBatch) error {
		if len(b.Src) != len(b.Dst) || (b.Weights != nil) != h.Meta.Weighted || b.Weights != nil && len(b.Weights) != len(b.Src) {
			return fmt.Errorf("a batch of %d sources, %d targets, %d weights", len(b.Src), len(b.Dst), len(b.Weights))
		}
		for i, src := range b.Src {
			if src >= n || b.Dst[i] >= n {
				return fmt.Errorf("an edge from %d to %d of %d", src, b.Dst[i], n)
			}
			h.Edges = append(h.Edges, [2]uint32{src, b.Dst[i]})
		}
		if len(b.Rows) != len(b.Src)*h.Meta.EdgeFeatures {
			return fmt.Errorf("a batch of %d edges with %d features of %d columns", len(b.Src), len(b.Rows), h.Meta.EdgeFeatures)
		}
		h.Weights, h.Rows = append(h.Weights, b.Weights...), append(h.Rows, b.Rows...)
		return nil
	}); err != nil {
		return nil, err
	}
	if uint64(len(h.Edges)) != h.Meta.Edges {
		return nil, fmt.Errorf("%d edges, and %d were said", len(h.Edges), h.Meta.Edges)
	}
	nonZeros := uint64(0)
	if err := s.Features(ctx, func(b graph.FeatureBatch) error {
		width := h.Meta.Features
		// row takes a vertex's row without its zeros.
		row := func(v uint32, indices []uint32, values []float32) error {
			if v >= n || h.Features[v] != nil {
				return fmt.Errorf("a row too many of vertex %d of %d", v, n)
			}
			cells := make([]Cell, 0, len(values))
			for i, x := range values {
				c := uint32(i)
				if indices != nil {
					c = indices[i]
				}
				if int(c) >= width || x-x != 0 || indices != nil && i > 0 && indices[i-1] >= c {
					return fmt.Errorf("feature %d of vertex %d is %v", c, v, x)
				}
				if x != 0 {
					cells = append(cells, Cell{float32(c), x})
				}
			}
			h.Features[v] = cells
			return nil
		}
		if h.Meta.Sparse {
			for i, from := range b.Indptr[:len(b.Indptr)-1] {
				to := b.Indptr[i+1]
				nonZeros += uint64(to - from)
				if err := row(b.Vertex(i), b.Indices[from:to:to], b.Values[from:to]); err != nil {
					return err
				}
			}
			return nil
		}
		if len(b.Dense)%width != 0 {
			return fmt.Errorf("%d values of %d columns", len(b.Dense), width)
		}
		for i := range len(b.Dense) / width {
			if err := row(b.Vertex(i), nil, b.Dense[i*width:(i+1)*width]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if !entries(&h.Meta, nonZeros) {
		return nil, fmt.Errorf("%d entries of features, and %d were said", nonZeros, h.Meta.NonZeros)
	}
	if h.Labels != nil && len(h.Labels) != int(n) {
		return nil, fmt.Errorf("%d labels of %d vertices", len(h.Labels), n)
	}
	for _, l := range h.Labels {
		if l < graph.NoLabel || int(l) >= h.Meta.Classes {
			return nil, fmt.Errorf("label %d of %d", l, h.Meta.Classes)
		}
	}
	for _, marks := range h.Splits {
		if len(marks) != int(n) || slices.Max(marks) > graph.Test {
			return nil, fmt.Errorf("a split of %d marks", len(marks))
		}
	}
	return h, nil
}

// SmallBatches checks that so many edges, whose features have so many columns, come in batches of no
// more than source.FeatureBatch values.
func SmallBatches(t *testing.T, s graph.Source, edges, columns int) {
	t.Helper()
	seen := 0
	err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		if seen += len(b.Src); len(b.Rows) != columns*len(b.Src) || len(b.Rows) > source.FeatureBatch {
			t.Errorf("%d edges with %d features at once", len(b.Src), len(b.Rows))
		}
		return nil
	})
	if err != nil || seen != edges {
		t.Errorf("%d edges, %v", seen, err)
	}
}

// MustHold opens what is at path, reads it through twice and closes it.
func MustHold(t *testing.T, open Opener, path string, o source.Options) *Held {
	t.Helper()
	s, err := open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := Hold(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	err = s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i, src := range b.Src {
			if h.Edges[again] != [2]uint32{src, b.Dst[i]} {
				return fmt.Errorf("edge %d is another one", again)
			}
			again++
		}
		return nil
	})
	if err != nil || again != len(h.Edges) {
		t.Errorf("read again, there are %d edges: %v", again, err)
	}
	return h
}

func (h *Held) Sizes(split int) [3]int {
	var n [3]int
	for _, m := range h.Splits[split] {
		if m != graph.Unmarked {
			n[m-1]++
		}
	}
	return n
}

// Refused expects an error, in opening or in reading, that is one sentence and says
// what is wanted.
func Refused(t *testing.T, open Opener, path string, o source.Options, want string) {
	t.Helper()
	s, err := open(t.Context(), path, o)
	if err == nil {
		_, err = Hold(t.Context(), s)
		s.Close()
	}
	if err == nil {
		t.Fatalf("it was taken; wanted: %s", want)
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("it was refused with\n%v\nnot with\n%s", err, want)
	}
}

// Within fails if f allocates more than some bytes, however they are used.
func Within(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d bytes are allocated, more than %d", used, most)
	}
}

// Consistent reads a source that may be large beyond its file, for a while.
func Consistent(t *testing.T, s graph.Source) {
	m := s.Meta()
	if m.Vertices == 0 || m.Vertices > graph.MaxVertices || m.Classes < 0 || m.Features < 0 {
		t.Errorf("it is %+v", m)
	}
	edges, rows := uint64(0), uint32(0)
	if err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		edges += uint64(len(b.Src))
		for i, src := range b.Src {
			if src >= m.Vertices || b.Dst[i] >= m.Vertices {
				t.Fatalf("an edge from %d to %d of %d", src, b.Dst[i], m.Vertices)
			}
		}
		if len(b.Src) != len(b.Dst) || (b.Weights != nil) != m.Weighted || !finite(b.Weights) {
			t.Fatal("a batch is not whole")
		}
		return nil
	}); err == nil && edges != m.Edges {
		t.Errorf("%d edges, not %d", edges, m.Edges)
	} else if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("not a sentence: %v", err)
	}
	nonZeros := uint64(0)
	if err := s.Features(t.Context(), func(b graph.FeatureBatch) error {
		if m.Sparse {
			for i, from := range b.Indptr[:len(b.Indptr)-1] {
				row := b.Indices[from:b.Indptr[i+1]]
				for j, c := range row {
					if int(c) >= m.Features || j > 0 && row[j-1] >= c {
						t.Fatal("columns out of order")
					}
				}
				nonZeros += uint64(len(row))
				rows++
			}
		} else {
			rows += uint32(len(b.Dense) / m.Features)
		}
		if !finite(b.Dense) || !finite(b.Values) {
			t.Fatal("a feature is not finite")
		}
		return nil
	}); err == nil && (rows > m.Vertices || m.Features > 0 && m.Format == "npz" && rows != m.Vertices || !entries(&m, nonZeros)) {
		t.Errorf("%d rows with %d entries of %+v", rows, nonZeros, m)
	}
	if s.Labels() != nil && len(s.Labels()) != int(m.Vertices) {
		t.Errorf("%d labels of %d vertices", len(s.Labels()), m.Vertices)
	}
	if err := graph.CheckSource(s); err != nil {
		t.Error(err)
	}
	for _, split := range s.Splits() {
		if len(split) != int(m.Vertices) {
			t.Errorf("%d marks of %d vertices", len(split), m.Vertices)
		}
	}
}

func finite(values []float32) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// entries reports whether so many entries of sparse features are those of a source.
func entries(m *graph.Meta, n uint64) bool {
	return n == m.NonZeros || m.Types != nil && n < m.NonZeros
}
