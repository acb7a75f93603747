package pipe

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// out is where a piece lies on its way out, in an epoch.
func (h *halo) out(q *piece, s, epoch int) []byte {
	rooms, at := q.out[s-h.w.first], 0
	switch {
	case h.w.Halo.Policy == Previous:
		at = epoch % 2
	case h.early:
		at = 1
	}
	return rooms[at][:h.bytes(q, s)]
}

// give reads a piece of rows out, and offers it.
func (h *halo) give(q *piece, s int) {
	if q.count() == 0 || h.silent() {
		return
	}
	d, width := h.w.Device, h.w.infos[s].In
	l := q.gives.levels[s-h.w.first]
	out := h.out(q, s, h.w.epoch)
	if q.direction == backwards && q.all() {
		read(d, out, q.mirrors(l.back))
	} else {
		x, rows := l.rows, q.own
		if q.direction == backwards {
			x, rows = l.back, q.mirror
		}
		h.space.Reset()
		y := h.space.Alloc(d.Type(), q.count(), width)
		h.w.gather(y, x, rows[q.low:q.high])
		if q.scale != 1 {
			d.Combine(y, q.scale, y, 0, tensor.Matrix{})
		}
		read(d, out, y)
	}
	if q.takes == nil {
		h.w.Exchange.Offer(h.tag(q, s, h.w.epoch), out)
	}
}

// giveBack gives what is known of the gradients at the mirrors of a position.
func (h *halo) giveBack(s, position int) {
	for _, c := range h.parcels[position] {
		for _, q := range c.pieces[backwards] {
			if q.gives != nil {
				h.give(q, s)
			}
		}
	}
}

// take gives what has come to the rows of who takes it.
func (h *halo) take(q *piece, s int, came []byte) {
	d, l := h.w.Device, q.takes.levels[s-h.w.first]
	if q.direction == forwards && q.all() {
		write(d, q.mirrors(l.rows), came[:h.bytes(q, s)])
		return
	}
	h.space.Reset()
	x := h.space.Alloc(d.Type(), q.count(), h.w.infos[s].In)
	write(d, x, came[:bytes(x)])
	if q.direction == forwards {
		// Rows that are not there stand for nothing; those that are stand for them.
		d.Zero(q.mirrors(l.rows))
		d.ScatterAdd(l.rows, x, q.mirror[q.low:q.high])
		return
	}
	d.ScatterAdd(l.back, x, q.own[q.low:q.high])
}

// mirrors are the piece's among the rows of the way that has them.
func (q *piece) mirrors(m tensor.Matrix) tensor.Matrix {
	return m.RowRange(q.to.own()+q.first+q.begin, q.end-q.begin)
}

// unsigned are rows as ids.
func unsigned(rows []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows))
}
