package gather

import "sync/atomic"

// hot finds the rows that are kept. The zero hot has none.
type hot struct {
	first uint32 // place of row 0
	all   bool   // the row of each vertex has its number
	rows  table  // else 1 + the row of each vertex
	// begun and here have a bit for each row: somebody writes it, or has; and it may be read.
	// nil: all may be.
	begun, here []uint64
}

func newHot(first uint32, vertices, places []uint32) hot {
	h := hot{first: first}
	h.rows.reserve(len(vertices))
	for i, v := range vertices {
		*h.rows.at(v) = uint64(places[i]-first+1)<<32 | uint64(v)
	}
	return h
}

// awaits says that rows come one by one.
func (h *hot) awaits(rows int) {
	words := (rows + 63) / 64
	h.begun, h.here = make([]uint64, words), make([]uint64, words)
}

// row returns the row of a vertex, if there is to be one.
func (h *hot) row(v uint32) (uint32, bool) {
	switch {
	case h.all:
		return v, true
	case h.rows.slots == nil:
		return 0, false
	}
	row := uint32(*h.rows.at(v) >> 32)
	return row - 1, row > 0
}

// place returns the place of a vertex's row, if it may be read.
func (h *hot) place(v uint32) (uint32, bool) {
	row, is := h.row(v)
	if is && h.here != nil {
		is = atomic.LoadUint64(&h.here[row/64])>>(row%64)&1 > 0
	}
	return h.first + row, is
}

// claim reports whether the caller is to write a row, and then call done.
func (h *hot) claim(row uint32) bool {
	bit := uint64(1) << (row % 64)
	return atomic.OrUint64(&h.begun[row/64], bit)&bit == 0
}

func (h *hot) done(row uint32) { atomic.OrUint64(&h.here[row/64], 1<<(row%64)) }

func (h *hot) bytes() uint64 { return h.rows.bytes() + 8*uint64(len(h.begun)+len(h.here)) }
