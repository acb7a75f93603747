package read

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

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
			h := readtest.MustHold(t, Open, want.path, source.Options{})
			m := h.Meta
			if m.Format != "npz" || int(m.Vertices) != want.vertices || int(m.Edges) != 2*want.undirected || m.Weighted || m.Features != want.columns || !m.Sparse || m.Classes != want.kind {
				t.Errorf("it is %+v", m)
			}
			if len(h.Splits) != 1 || h.Sizes(0) != want.sizes {
				t.Errorf("%d splits of sizes %v", len(h.Splits), h.Sizes(0))
			}
			degrees := make([]int, m.Vertices)
			for _, e := range h.Edges {
				degrees[e[0]]++
			}
			isolated, isolatedTest := 0, 0
			for v, d := range degrees {
				if d == 0 {
					isolated++
					if h.Splits[0][v] == graph.Test {
						isolatedTest++
					}
				}
			}
			if isolated != want.isolated || isolatedTest != want.isolatedTest || slices.Max(degrees) != want.degree {
				t.Errorf("%d isolated vertices, %d of them in test, largest degree %d", isolated, isolatedTest, slices.Max(degrees))
			}
			var largest float32
			for _, row := range h.Features {
				for _, c := range row {
					largest = max(largest, c[1])
				}
			}
			density := float64(m.NonZeros) / float64(m.Vertices) / float64(m.Features) * 100
			if largest != want.largest || math.Abs(density-want.density) > 0.06 {
				t.Errorf("features of up to %v, density %v", largest, density)
			}
			if !slices.Equal(h.Notes, nil) {
				t.Errorf("notes %q", h.Notes)
			}
			// Each edge has its reverse, each class a vertex.
			reverse := make([][2]uint32, len(h.Edges))
			for i, e := range h.Edges {
				reverse[i] = [2]uint32{e[1], e[0]}
			}
			slices.SortFunc(reverse, func(a, b [2]uint32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
			if !slices.Equal(reverse, h.Edges) {
				t.Error("edges have no reverse")
			}
			seen := map[int32]bool{}
			for _, l := range h.Labels {
				seen[l] = true
			}
			if len(seen) != want.kind || seen[graph.NoLabel] {
				t.Errorf("classes %v", seen)
			}
		})
	}
}
