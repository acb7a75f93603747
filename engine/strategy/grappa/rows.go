package grappa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Rows are in-edges of vertices, as fetched from their nodes.
type Rows struct {
	Vertices []uint32 // ascending
	// Degrees is how many in-edges each has in the whole graph, including one from
	// itself. Some may be left out here.
	Degrees []int32
	Indptr  []int64 // from 0 on: where the edges of each begin, then where they end
	Sources []int32 // ascending within a row
	Weights []float32
}

// check returns an error unless rows are valid in a graph of so many vertices.
func (r *Rows) check(vertices int) error {
	n := len(r.Vertices)
	if len(r.Degrees) != n || len(r.Indptr) != n+1 || r.Indptr[0] != 0 || r.Indptr[n] != int64(len(r.Sources)) || !slices.IsSorted(r.Indptr) ||
		r.Weights != nil && len(r.Weights) != len(r.Sources) {
		return fmt.Errorf("the edges of %d vertices came with %d degrees, %d bounds and %d weights of %d sources", n, len(r.Degrees), len(r.Indptr), len(r.Weights), len(r.Sources))
	}
	last := int64(-1)
	for i, v := range r.Vertices {
		if int64(v) <= last || int64(v) >= int64(vertices) {
			return fmt.Errorf("the edges of vertex %d came after those of vertex %d, of a graph of %d vertices", v, last, vertices)
		}
		last = int64(v)
		row := r.Sources[r.Indptr[i]:r.Indptr[i+1]]
		if int64(r.Degrees[i]) < int64(len(row)) {
			return fmt.Errorf("vertex %d has %d edges, and %d of them came", v, r.Degrees[i], len(row))
		}
		before := int64(-1)
		for _, u := range row {
			if int64(u) <= before || int64(u) >= int64(vertices) {
				return fmt.Errorf("an edge from vertex %d to vertex %d came after one from %d, of a graph of %d vertices", u, v, before, vertices)
			}
			before = int64(u)
		}
	}
	for i, w := range r.Weights {
		if math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) {
			return fmt.Errorf("an edge from vertex %d came with a weight of %v", r.Sources[i], w)
		}
	}
	return nil
}

// taken holds the received rows, in any order, and finds them by vertex.
type taken struct {
	all    []Rows
	index  []place
	sorted bool // by vertex
}

// A place is where a row is.
type place struct {
	vertex  uint32
	of, row int32
}

func (t *taken) add(r Rows) {
	t.all = append(t.all, r)
	for i, v := range r.Vertices {
		t.index = append(t.index, place{v, int32(len(t.all) - 1), int32(i)})
	}
	t.sorted = false
}

// row returns the row of a vertex, which must have come.
func (t *taken) row(v uint32) (sources []int32, weights []float32, degree int) {
	if !t.sorted {
		slices.SortFunc(t.index, func(a, b place) int { return cmp.Compare(a.vertex, b.vertex) })
		t.sorted = true
	}
	at, _ := slices.BinarySearchFunc(t.index, v, func(p place, v uint32) int { return cmp.Compare(p.vertex, v) })
	p := t.index[at]
	r := &t.all[p.of]
	from, to := r.Indptr[p.row], r.Indptr[p.row+1]
	if r.Weights != nil {
		weights = r.Weights[from:to:to]
	}
	return r.Sources[from:to:to], weights, int(r.Degrees[p.row])
}
