package pipe

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A transfer is all pieces of a position at a stage in one direction. All ways make the
// same transfers in the same order.
type transfer struct{ direction, s, position int }

// previousAhead is how many transfers are under way at once where rows of the last epoch
// are used. These are already there, so nobody waits for one layer's rows while the layer
// before is computed.
const previousAhead = 2

// begin starts an epoch.
func (h *halo) begin() {
	if h.w.Halo.Policy == Sampled {
		h.choose()
	}
	h.transfers = h.transfers[:0]
	h.products(forwards)
	for direction := range 2 {
		for i := range h.w.order {
			place, from, to, step := i, h.w.first, h.w.end, 1
			if direction == backwards {
				place, from, to, step = len(h.w.order)-1-i, h.w.end-1, h.w.first-1, -1
			}
			for s := from; s != to; s += step {
				if h.w.meets(s) && !h.silent() {
					h.transfers = append(h.transfers, transfer{direction, s, h.w.order[place]})
				}
			}
		}
	}
	h.products(backwards)
	h.ahead = 1
	if h.used() != h.w.epoch {
		h.ahead = previousAhead
	}
	h.startAhead()
}

// products adds the transfers of products, or of the gradients at them.
func (h *halo) products(direction int) {
	for p := 0; h.w.multiplies() && p < h.w.Shape.Positions(); p++ {
		h.transfers = append(h.transfers, transfer{direction, productsAt, p})
	}
}

// beginEarly starts a history, for which all positions go through a layer before any goes
// through the next.
func (h *halo) beginEarly() {
	h.transfers = h.transfers[:0]
	for s := h.w.first; s < h.w.end; s++ {
		for p := 0; h.w.sees(s) && p < h.w.Shape.Positions(); p++ {
			h.transfers = append(h.transfers, transfer{forwards, s, p})
		}
	}
	h.ahead = h.w.Shape.Positions()
	h.startAhead()
}

// startAhead starts the first transfers.
func (h *halo) startAhead() {
	h.started, h.over = 0, 0
	for range h.ahead {
		h.next()
	}
}

// next starts a transfer ahead of when it is needed, if there is one left.
func (h *halo) next() {
	if h.started < len(h.transfers) && !h.w.apart {
		h.start()
	}
}

// start begins to receive the next transfer. Its buffers have been emptied by the transfer
// before or, if several are under way, by the one before that.
func (h *halo) start() {
	t, number := h.transfers[h.started], h.started
	h.started++
	for _, c := range h.parcels[t.position] {
		for _, q := range c.pieces[t.direction] {
			if len(q.in) > 0 && q.count() > 0 {
				q.in[number%len(q.in)].Start(h.tag(q, t.s, h.used()), h.came(q, t.s, number))
			}
		}
	}
}

// bytes returns the size of a piece at a stage.
func (h *halo) bytes(q *piece, s int) int {
	return q.count() * h.w.infos[s].In * h.w.Device.Type().Bytes()
}

// rows waits for the mirrors' rows of a position before a layer, and stores them.
func (h *halo) rows(s, position int) error {
	if err := h.arrive(transfer{forwards, s, position}); err != nil {
		return fmt.Errorf("fetch the rows that %s reads: %w", h.w.infos[s].Name, err)
	}
	return nil
}

// gradients waits for other ways' gradients at the rows of a position, and adds them.
func (h *halo) gradients(s, position int) error {
	if err := h.arrive(transfer{backwards, s, position}); err != nil {
		return fmt.Errorf("fetch the gradients of other ways in %s: %w", h.w.infos[s].Name, err)
	}
	return nil
}

// arrive ends the next transfer, which must be this one. Pieces are stored in their order,
// whichever comes first.
func (h *halo) arrive(t transfer) error {
	if h.silent() {
		return nil
	}
	if h.transfers[h.over] != t {
		return fmt.Errorf("pipe: transfer %+v ends before %+v", t, h.transfers[h.over])
	}
	if h.w.apart {
		h.start()
	}
	for _, c := range h.parcels[t.position] {
		for _, q := range c.pieces[t.direction] {
			if q.takes == nil {
				continue
			}
			came := []byte(nil)
			switch {
			case q.count() == 0: // no row is drawn, and the mirrors are zeros
			case q.gives != nil: // it is on this node
				came = h.out(q, t.s, h.used())
			default:
				if err := q.in[h.over%len(q.in)].Wait(); err != nil {
					return err
				}
				came = h.came(q, t.s, h.over)
			}
			h.take(q, t.s, came)
		}
	}
	h.over++
	h.next()
	return nil
}

// out returns the buffer of a piece in an epoch.
func (h *halo) out(q *piece, s, epoch int) []byte {
	if h.direct && q.direction == backwards {
		return plain.Of(q.mirrors(q.gives.levels[s-h.w.first].back))
	}
	rooms, at := q.out[s-h.w.first], 0
	switch {
	case h.w.Halo.Policy == Previous:
		at = epoch % 2
	case h.early:
		at = 1
	}
	return rooms[at][:h.bytes(q, s)]
}

// give copies a piece into its buffer, and offers it.
func (h *halo) give(q *piece, s int) {
	if q.count() == 0 || h.silent() {
		return
	}
	direct := h.direct && q.direction == backwards // and free since the layer began
	if !direct && !h.reclaim(q, s) {
		return // the epoch has failed
	}
	d, width := h.w.Device, h.w.infos[s].In
	l := q.gives.levels[s-h.w.first]
	out := h.out(q, s, h.w.epoch)
	switch {
	case direct:
	case q.direction == backwards && q.all():
		plain.Read(d, out, q.mirrors(l.back))
	default:
		x, rows := l.rows, q.parcel.own
		if q.direction == backwards {
			x, rows = l.back, q.parcel.mirror
		}
		h.space.Reset()
		y := h.space.Alloc(d.Type(), q.count(), width)
		h.w.gather(y, x, rows[q.low:q.high])
		if q.parcel.scale != 1 {
			d.Combine(y, q.parcel.scale, y, 0, tensor.Matrix{})
		}
		plain.Read(d, out, y)
	}
	if q.takes == nil {
		h.w.net.Offer(h.tag(q, s, h.w.epoch), out)
	}
}

// reclaim waits until nobody reads the room in which a piece will be offered any more. It was
// offered there two transfers ago. Whoever takes it asks for one transfer when the one before
// has come, so it has that one once it asks for the next. And it will ask: it waits for
// transfers of others that come before this one, and for no later ones.
func (h *halo) reclaim(q *piece, s int) bool {
	at := slices.Index(h.seen, s)
	back := 1 // to the transfer before
	if q.direction == backwards {
		back = -1
	}
	if !h.turns || q.takes != nil || at-2*back < 0 || at-2*back >= len(h.seen) {
		return true
	}
	err := h.w.net.Reclaim(h.tag(q, h.seen[at-2*back], h.w.epoch), h.tag(q, h.seen[at-back], h.w.epoch))
	if err != nil {
		h.w.net.Fail(fmt.Errorf("offer the rows of %s: %w", h.w.infos[s].Name, err))
	}
	return err == nil
}

// clear sets the gradients at the rows that a layer reads to 0, once nobody reads those any more
// that were offered from the same memory.
func (h *halo) clear(s int) {
	for p := 0; h.direct && p < len(h.parcels); p++ {
		for _, c := range h.parcels[p] {
			for _, q := range c.pieces[backwards] {
				if q.gives != nil && !h.reclaim(q, s) {
					return // the epoch has failed
				}
			}
		}
	}
	for _, way := range h.w.ways {
		if l := way.levels[s-h.w.first]; l != nil {
			h.w.Device.Zero(l.back)
		}
	}
}

// giveBack gives the gradients at the mirrors of a position.
func (h *halo) giveBack(s, position int) {
	for _, c := range h.parcels[position] {
		for _, q := range c.pieces[backwards] {
			if q.gives != nil {
				h.give(q, s)
			}
		}
	}
}

// take stores what has come for the way that takes it.
func (h *halo) take(q *piece, s int, came []byte) {
	d, l := h.w.Device, q.takes.levels[s-h.w.first]
	if q.direction == forwards && q.all() {
		if !h.direct || q.gives != nil { // it is not there yet
			plain.Write(d, q.mirrors(l.rows), came[:h.bytes(q, s)])
		}
		return
	}
	h.space.Reset()
	x := h.space.Alloc(d.Type(), q.count(), h.w.infos[s].In)
	plain.Write(d, x, came[:plain.Size(x)])
	if q.direction == forwards {
		// Missing rows count as zeros; those that are there are scaled up.
		d.Zero(q.mirrors(l.rows))
		d.ScatterAdd(l.rows, x, q.parcel.mirror[q.low:q.high])
		return
	}
	d.ScatterAdd(l.back, x, q.parcel.own[q.low:q.high])
}

// mirrors returns the piece's rows among those of the way that mirrors them.
func (q *piece) mirrors(m tensor.Matrix) tensor.Matrix {
	return m.RowRange(q.parcel.to.own()+q.parcel.first+q.begin, q.end-q.begin)
}

// unsigned returns rows as ids.
func unsigned(rows []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows))
}
