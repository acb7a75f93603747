package train

import (
	"errors"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// bring exchanges the rows x after a stage: those that are here go to the nodes that want
// them, and those of the halo come to the rows behind them in to. bring waits for what
// it takes only: others may be behind by more than a stage, so that what they are
// offered stays until all are done.
func (h *halo) bring(i *inference, s int, x tensor.Matrix, to *table) error {
	if err := h.give(i, s, x); err != nil {
		return err
	}
	if len(h.ids) == 0 {
		return nil
	}
	row := i.stages[s].Out * i.device.Type().Bytes()
	if i.inFile {
		return h.fetchWindows(s, row, to)
	}
	h.in = room(h.in, len(h.ids)*row)
	for node, t := range h.takers {
		t.set(s, row, h.in[h.from[node]*row:h.from[node+1]*row])
	}
	if err := h.take(); err != nil {
		return err
	}
	return to.writeBytes(h.own.rows, h.in)
}

func (t *taker) set(stage, row int, to []byte) {
	t.parcel, t.kind, t.to = parcel{what: stage, to: t.halo.shared.work.Self, row: row}, strategy.Activation, to
}

// fetchWindows takes rows one window after the other, in the memory of one.
func (h *halo) fetchWindows(s, row int, to *table) error {
	for node, t := range h.takers {
		first, rest := h.own.rows+h.from[node], h.of(node)*row
		t.set(s, row, nil)
		window, places := h.window(t.parcel, rest)
		for place := 0; rest > 0; place++ {
			n := min(window, rest)
			h.in = room(h.in, n)
			if err := t.one(h.tag(t.parcel, places, place), h.in); err != nil {
				return err
			}
			if err := to.writeBytes(first, h.in); err != nil {
				return err
			}
			first, rest = first+n/row, rest-n
		}
	}
	return nil
}

// give offers rows to all that want some.
func (h *halo) give(i *inference, s int, x tensor.Matrix) error {
	total, cols := h.wants(), i.stages[s].Out
	if total == 0 {
		return nil
	}
	if err := h.reserve(i, s, total); err != nil {
		return err
	}
	first, row := 0, cols*i.device.Type().Bytes()
	for node, rows := range h.wanted {
		for at := 0; at < len(rows); at += grain {
			some := rows[at:min(at+grain, len(rows))]
			h.rows.Reset()
			y := h.rows.Alloc(i.device.Type(), len(some), cols)
			i.pick(y, x, some)
			if !i.inFile {
				readRows(i.device, h.out[s][(first+at)*row:(first+at+len(some))*row], y)
			} else if err := h.mapped[s].write(first+at, y); err != nil {
				return err
			}
		}
		h.offer(parcel{what: s, to: node, row: row}, h.out[s][first*row:(first+len(rows))*row])
		first += len(rows)
	}
	return nil
}

// reserve makes room for the rows of a stage that are given.
func (h *halo) reserve(i *inference, s, rows int) (err error) {
	if h.rows == nil {
		if h.rows, err = i.device.NewArena(0); err != nil {
			return err
		}
	}
	cols := i.stages[s].Out
	if !i.inFile {
		h.out[s] = room(h.out[s], rows*cols*i.device.Type().Bytes())
		return nil
	}
	if h.mapped[s], err = newTable(i.device, rows, cols, true, i.dir); err == nil {
		h.out[s] = h.mapped[s].mapping
	}
	return err
}

// unmap gives back the files of what was offered. Where somebody may read them still,
// which read says, they stay.
func (h *halo) unmap(read error) (err error) {
	for s, t := range h.mapped {
		if t != nil && read == nil {
			err = errors.Join(err, t.close())
		}
		if t != nil {
			h.mapped[s], h.out[s] = nil, nil
		}
	}
	return err
}

func (h *halo) close() {
	if h == nil {
		return
	}
	h.cancel()
	if h.rows != nil {
		h.rows.Close()
	}
}
