package read

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// held is a source read through, as a test can look at it.
type held struct {
	meta     graph.Meta
	edges    [][2]uint32
	weights  []float32
	features map[uint32][]cell // without zeros
	labels   []int32
	splits   [][]graph.Mark
	notes    []string
}

type cell struct {
	column uint32
	value  float32
}

// hold reads a source through, and checks what every source must keep.
func hold(ctx context.Context, s graph.Source) (*held, error) {
	h := &held{meta: s.Meta(), labels: s.Labels(), splits: s.Splits(), notes: s.Notes(), features: map[uint32][]cell{}}
	n := h.meta.Vertices
	if err := s.Edges(ctx, func(b graph.EdgeBatch) error {
		if len(b.Src) != len(b.Dst) || (b.Weights != nil) != h.meta.Weighted || b.Weights != nil && len(b.Weights) != len(b.Src) {
			return fmt.Errorf("a batch of %d sources, %d targets, %d weights", len(b.Src), len(b.Dst), len(b.Weights))
		}
		for i, src := range b.Src {
			if src >= n || b.Dst[i] >= n {
				return fmt.Errorf("an edge from %d to %d of %d", src, b.Dst[i], n)
			}
			h.edges = append(h.edges, [2]uint32{src, b.Dst[i]})
		}
		h.weights = append(h.weights, b.Weights...)
		return nil
	}); err != nil {
		return nil, err
	}
	if uint64(len(h.edges)) != h.meta.Edges {
		return nil, fmt.Errorf("%d edges, and %d were said", len(h.edges), h.meta.Edges)
	}
	nonZeros := uint64(0)
	if err := s.Features(ctx, func(b graph.FeatureBatch) error {
		width := h.meta.Features
		// row takes a vertex's row without its zeros.
		row := func(v uint32, indices []uint32, values []float32) error {
			if v >= n || h.features[v] != nil {
				return fmt.Errorf("a row too many of vertex %d of %d", v, n)
			}
			cells := make([]cell, 0, len(values))
			for i, x := range values {
				c := uint32(i)
				if indices != nil {
					c = indices[i]
				}
				if int(c) >= width || x-x != 0 || indices != nil && i > 0 && indices[i-1] >= c {
					return fmt.Errorf("feature %d of vertex %d is %v", c, v, x)
				}
				if x != 0 {
					cells = append(cells, cell{c, x})
				}
			}
			h.features[v] = cells
			return nil
		}
		if h.meta.Sparse {
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
	if nonZeros != h.meta.NonZeros {
		return nil, fmt.Errorf("%d entries of features, and %d were said", nonZeros, h.meta.NonZeros)
	}
	if h.labels != nil && len(h.labels) != int(n) {
		return nil, fmt.Errorf("%d labels of %d vertices", len(h.labels), n)
	}
	for _, l := range h.labels {
		if l < graph.NoLabel || int(l) >= h.meta.Classes {
			return nil, fmt.Errorf("label %d of %d", l, h.meta.Classes)
		}
	}
	for _, marks := range h.splits {
		if len(marks) != int(n) || slices.Max(marks) > graph.Test {
			return nil, fmt.Errorf("a split of %d marks", len(marks))
		}
	}
	return h, nil
}

// mustHold opens what is at path, reads it through twice and closes it.
func mustHold(t *testing.T, path string, o Options) *held {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := hold(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	err = s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i, src := range b.Src {
			if h.edges[again] != [2]uint32{src, b.Dst[i]} {
				return fmt.Errorf("edge %d is another one", again)
			}
			again++
		}
		return nil
	})
	if err != nil || again != len(h.edges) {
		t.Errorf("read again, there are %d edges: %v", again, err)
	}
	return h
}

func (h *held) sizes(split int) [3]int {
	var n [3]int
	for _, m := range h.splits[split] {
		if m != graph.Unmarked {
			n[m-1]++
		}
	}
	return n
}

func TestKnownGraphs(t *testing.T) {
	for _, want := range []struct {
		path                                string
		vertices, undirected, columns, kind int
		sizes                               [3]int
		isolated, isolatedTest, degree      int
		density                             float64 // in percent, as rounded
		largest                             float32
	}{
		{"../cora/cora.npz", 2708, 5278, 1433, 7, [3]int{140, 500, 1000}, 0, 0, 168, 1.3, 1},
		{"testdata/citeseer.npz", 3327, 4552, 3703, 6, [3]int{120, 500, 1000}, 48, 12, 99, 0.9, 1},
		{"testdata/amazon_photo.npz", 7650, 119081, 745, 8, [3]int{4590, 1530, 1530}, 115, 20, 1434, 34.7, 1},
		{"testdata/amazon_computers.npz", 13752, 245861, 767, 10, [3]int{8251, 2750, 2751}, 281, 38, 2992, 34.8, 1},
		{"testdata/coauthor_cs.npz", 18333, 81894, 6805, 15, [3]int{10999, 3666, 3668}, 0, 0, 136, 0.9, 105},
	} {
		t.Run(want.path, func(t *testing.T) {
			h := mustHold(t, want.path, Options{})
			m := h.meta
			if m.Format != "npz" || int(m.Vertices) != want.vertices || int(m.Edges) != 2*want.undirected || m.Weighted || m.Features != want.columns || !m.Sparse || m.Classes != want.kind {
				t.Errorf("it is %+v", m)
			}
			if len(h.splits) != 1 || h.sizes(0) != want.sizes {
				t.Errorf("%d splits of sizes %v", len(h.splits), h.sizes(0))
			}
			degrees := make([]int, m.Vertices)
			for _, e := range h.edges {
				degrees[e[0]]++
			}
			isolated, isolatedTest := 0, 0
			for v, d := range degrees {
				if d == 0 {
					isolated++
					if h.splits[0][v] == graph.Test {
						isolatedTest++
					}
				}
			}
			if isolated != want.isolated || isolatedTest != want.isolatedTest || slices.Max(degrees) != want.degree {
				t.Errorf("%d isolated vertices, %d of them in test, largest degree %d", isolated, isolatedTest, slices.Max(degrees))
			}
			var largest float32
			for _, row := range h.features {
				for _, c := range row {
					largest = max(largest, c.value)
				}
			}
			density := float64(m.NonZeros) / float64(m.Vertices) / float64(m.Features) * 100
			if largest != want.largest || math.Abs(density-want.density) > 0.06 {
				t.Errorf("features of up to %v, density %v", largest, density)
			}
			if !slices.Equal(h.notes, nil) {
				t.Errorf("notes %q", h.notes)
			}
			// Each edge has its reverse, each class a vertex.
			reverse := make([][2]uint32, len(h.edges))
			for i, e := range h.edges {
				reverse[i] = [2]uint32{e[1], e[0]}
			}
			slices.SortFunc(reverse, func(a, b [2]uint32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
			if !slices.Equal(reverse, h.edges) {
				t.Error("edges have no reverse")
			}
			seen := map[int32]bool{}
			for _, l := range h.labels {
				seen[l] = true
			}
			if len(seen) != want.kind || seen[graph.NoLabel] {
				t.Errorf("classes %v", seen)
			}
		})
	}
}
