package pipe

import "fmt"

// A trip is all pieces of a position at a stage in one direction. Ways make the same trips
// in the same order.
type trip struct{ direction, s, position int }

// previousAhead is how many trips are under way at once where rows of the last epoch are
// seen, which lie ready: so nobody waits for a layer's while the layer before is computed.
const previousAhead = 2

// begin begins an epoch.
func (h *halo) begin() {
	if h.w.Halo.Policy == Sampled {
		h.choose()
	}
	h.trips = h.trips[:0]
	for direction := range 2 {
		for i := range h.w.order {
			place, from, to, step := i, h.w.first, h.w.end, 1
			if direction == backwards {
				place, from, to, step = len(h.w.order)-1-i, h.w.end-1, h.w.first-1, -1
			}
			for s := from; s != to; s += step {
				if h.w.sees(s) && !h.silent() {
					h.trips = append(h.trips, trip{direction, s, h.w.order[place]})
				}
			}
		}
	}
	h.ahead = 1
	if h.seen() != h.w.epoch {
		h.ahead = previousAhead
	}
	h.depart()
}

// beginEarly begins a history, for which all positions see a layer before any sees the next.
func (h *halo) beginEarly() {
	h.trips = h.trips[:0]
	for s := h.w.first; s < h.w.end; s++ {
		for p := 0; h.w.sees(s) && p < h.w.Shape.Positions(); p++ {
			h.trips = append(h.trips, trip{forwards, s, p})
		}
	}
	h.ahead = h.w.Shape.Positions()
	h.depart()
}

// depart starts the first trips.
func (h *halo) depart() {
	h.started, h.over = 0, 0
	for range h.ahead {
		h.next()
	}
}

// next starts a trip ahead of when it is wanted, if there is one.
func (h *halo) next() {
	if h.started < len(h.trips) && !h.w.apart {
		h.start()
	}
}

// start begins to take what comes from other nodes on the next trip. Where it goes has been
// emptied by the trip before or, if several are under way, by the one before that.
func (h *halo) start() {
	t, number := h.trips[h.started], h.started
	h.started++
	for _, c := range h.parcels[t.position] {
		for _, q := range c.pieces[t.direction] {
			if len(q.in) > 0 && q.count() > 0 {
				at := number % len(q.in)
				q.in[at].start(h.tag(q, t.s, h.seen()), q.came[at][:h.bytes(q, t.s)])
			}
		}
	}
}

// bytes is how many a piece has at a stage.
func (h *halo) bytes(q *piece, s int) int {
	return q.count() * h.w.infos[s].In * h.w.Device.Type().Bytes()
}

// rows waits for the mirrors' rows of a position before a layer, and takes them.
func (h *halo) rows(s, position int) error {
	if err := h.arrive(trip{forwards, s, position}); err != nil {
		return fmt.Errorf("bring the rows that %s sees: %w", h.w.infos[s].Name, err)
	}
	return nil
}

// gradients waits for what others know of the gradients at the rows of a position, and adds
// it.
func (h *halo) gradients(s, position int) error {
	if err := h.arrive(trip{backwards, s, position}); err != nil {
		return fmt.Errorf("bring the gradients at what others see in %s: %w", h.w.infos[s].Name, err)
	}
	return nil
}

// arrive ends the trip that is next, which is this one. Pieces are taken in their order,
// whichever is there first.
func (h *halo) arrive(t trip) error {
	if h.silent() {
		return nil
	}
	if h.trips[h.over] != t {
		return fmt.Errorf("pipe: the trip %+v is made in place of %+v", t, h.trips[h.over])
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
			case q.count() == 0: // no row is drawn, and the mirrors are nothing
			case q.gives != nil: // it never left
				came = h.out(q, t.s, h.seen())
			default:
				at := h.over % len(q.in)
				if err := q.in[at].wait(); err != nil {
					return err
				}
				came = q.came[at]
			}
			h.take(q, t.s, came)
		}
	}
	h.over++
	h.next()
	return nil
}
