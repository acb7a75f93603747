package features

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Rows are the sparse rows of some vertices, in reused buffers.
type Rows struct {
	tensor.CSR
	transpose tensor.Transpose
	values    []float32
	next      []int64
}

// shardOf returns the shard of a vertex and its row there. It tries shard near first.
func (s *Store) shardOf(v uint32, near int) (int, int) {
	if shard := s.shards[near]; v-shard.First >= uint32(shard.Vertices) { // an underflow, if v is below First, also fails this
		at, found := slices.BinarySearch(s.firsts, v)
		if !found {
			at--
		}
		// Empty shards share their First with the next; the last of these has the
		// vertices.
		for at+1 < len(s.firsts) && s.firsts[at+1] <= v {
			at++
		}
		near = at
	}
	return near, int(v - s.firsts[near])
}

// Entries returns the number of entries in the rows of these vertices, which must be
// here. The store must be sparse.
func (s *Store) Entries(vertices []uint32) int {
	n, shard := int64(0), 0
	for _, v := range vertices {
		at, row := s.shardOf(v, shard)
		shard = at
		rows := s.shards[shard].Sparse
		n += rows.Indptr[row+1] - rows.Indptr[row]
	}
	return int(n)
}

// Fill sets r to the rows at these places; transpose sets r.Transposed too. far may be
// nil if all rows are here. It allocates only while batches grow.
func (s *Store) Fill(r *Rows, places []uint32, transpose bool, far *Far) {
	r.Rows, r.Cols = len(places), s.columns
	r.Indptr = append(r.Indptr[:0], 0)
	r.Indices, r.values, r.Values = r.Indices[:0], r.values[:0], nil
	shard := 0
	for _, place := range places {
		if place < s.total {
			at, row := s.shardOf(place, shard)
			shard = at
			r.take(s, shard, row)
		} else {
			r.takeFar(far.row(int(place - s.total)))
		}
		r.Indptr = append(r.Indptr, int64(len(r.Indices)))
	}
	if !s.ones || s.scaled {
		r.Values = r.values
	}
	r.Transposed, r.Stamp = nil, tensor.NewStamp()
	if transpose {
		r.flip()
	}
}

func (r *Rows) take(s *Store, shard, row int) {
	rows := s.shards[shard].Sparse
	from, to := rows.Indptr[row], rows.Indptr[row+1]
	r.Indices = append(r.Indices, rows.Columns[from:to]...)
	scale := float32(1)
	if s.scaled {
		scale = s.scale[shard][row]
	}
	switch {
	case s.ones && !s.scaled:
	case s.ones:
		for range to - from {
			r.values = append(r.values, scale)
		}
	default:
		for i := from; i < to; i++ {
			r.values = append(r.values, entry(rows, i)*scale)
		}
	}
}

func (r *Rows) takeFar(rows *tensor.CSR, row int) {
	from, to := rows.Indptr[row], rows.Indptr[row+1]
	r.Indices = append(r.Indices, rows.Indices[from:to]...)
	if rows.Values != nil {
		r.values = append(r.values, rows.Values[from:to]...)
	}
}

// flip sorts the entries by column with a counting sort.
func (r *Rows) flip() {
	t := &r.transpose
	n := len(r.Indices)
	t.Indptr = resize(t.Indptr, r.Cols+1)
	t.Rows, t.Edges = resize(t.Rows, n), resize(t.Edges, n)
	r.next = resize(r.next, r.Cols)
	clear(r.next)
	for _, c := range r.Indices {
		r.next[c]++
	}
	at := int64(0)
	for c, count := range r.next {
		t.Indptr[c], r.next[c] = at, at
		at += count
	}
	t.Indptr[r.Cols] = at
	for row := range r.Rows {
		for i := r.Indptr[row]; i < r.Indptr[row+1]; i++ {
			c := r.Indices[i]
			t.Rows[r.next[c]], t.Edges[r.next[c]] = int32(row), int32(i)
			r.next[c]++
		}
	}
	r.Transposed = t
}

// resize returns a slice of n elements of unspecified content.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
