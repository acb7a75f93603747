package dataset

import "slices"

// An Index finds the rows of some vertices, which ascend.
type Index struct {
	ids  []uint32
	rows []int32
	// near[v>>shift] is the index of the first with these high bits, or of what follows.
	near  []int32
	shift uint
}

// NewIndex returns an index of vertices, which are of so many, and their rows.
func NewIndex(ids []uint32, rows []int32, vertices int) Index {
	x := Index{ids: ids, rows: rows}
	for vertices>>x.shift > len(ids) {
		x.shift++
	}
	x.near = make([]int32, vertices>>x.shift+2)
	at := 0
	for i := range x.near {
		for at < len(ids) && int(ids[at]>>x.shift) < i {
			at++
		}
		x.near[i] = int32(at)
	}
	return x
}

// Find returns the row of a vertex, which must be one of them.
func (x *Index) Find(v uint32) int32 {
	from, to := x.near[v>>x.shift], x.near[v>>x.shift+1]
	at, _ := slices.BinarySearch(x.ids[from:to], v)
	return x.rows[int(from)+at]
}
