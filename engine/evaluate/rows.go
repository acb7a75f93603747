package evaluate

import (
	"context"
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// bring exchanges the rows x after a stage: those that are here go to the nodes that need
// them, and those of the halo come to the rows behind them in to. bring waits only for what
// it takes: others may be behind by more than a stage, so that offers stay until all are
// done.
func (h *halo) bring(i *Inference, s int, x tensor.Matrix, to *table) error {
	if err := h.give(i, s, x); err != nil {
		return err
	}
	if h.size() == 0 {
		return nil
	}
	row := i.now.stages[s].Out * i.device.Type().Bytes()
	if i.planned.inFile {
		return h.fetchWindows(s, row, to)
	}
	in, there := to.memory(h.own.rows, h.size())
	if !there {
		h.in = plain.Grow(h.in, h.size()*row)
		in = h.in
	}
	for node, t := range h.parcels.takers {
		t.set(s, row, in[h.from[node]*row:h.from[node+1]*row])
	}
	if err := h.parcels.take(); err != nil || there {
		return err
	}
	return to.writeBytes(h.own.rows, in)
}

// fetchWindows takes rows one window after the other, in the memory of one.
func (h *halo) fetchWindows(s, row int, to *table) error {
	for node, t := range h.parcels.takers {
		first, rest := h.own.rows+h.from[node], h.of(node)*row
		t.set(s, row, nil)
		window, places := h.parcels.window(t.parcel, rest)
		for place := 0; rest > 0; place++ {
			n := min(window, rest)
			h.in = plain.Grow(h.in, n)
			if err := t.one(h.parcels.tag(t.parcel, places, place), h.in); err != nil {
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

// give offers rows to all nodes that need some.
func (h *halo) give(i *Inference, s int, x tensor.Matrix) error {
	total, cols := h.wants(), i.now.stages[s].Out
	if total == 0 {
		return nil
	}
	if err := h.reserve(i, s, total); err != nil {
		return err
	}
	first, row := 0, cols*i.device.Type().Bytes()
	for node, rows := range h.wanted {
		for at := 0; at < len(rows); at += chunkRows {
			some := rows[at:min(at+chunkRows, len(rows))]
			h.rows.Reset()
			y := h.rows.Alloc(i.device.Type(), len(some), cols)
			i.pick(y, x, some)
			if !i.planned.inFile {
				plain.Read(i.device, h.out[s][(first+at)*row:(first+at+len(some))*row], y)
			} else if err := h.mapped[s].write(first+at, y); err != nil {
				return err
			}
		}
		h.parcels.offer(parcel{what: s, to: node, row: row}, h.out[s][first*row:(first+len(rows))*row])
		first += len(rows)
	}
	return nil
}

// reserve makes room for the rows of a stage that are given.
func (h *halo) reserve(i *Inference, s, rows int) (err error) {
	if h.rows == nil {
		if h.rows, err = i.device.NewArena(0); err != nil {
			return err
		}
	}
	cols := i.now.stages[s].Out
	if !i.planned.inFile {
		h.out[s] = plain.Grow(h.out[s], rows*cols*i.device.Type().Bytes())
		return nil
	}
	if h.mapped[s], err = newTable(i.device, rows, cols, true, i.folder.dir); err == nil {
		h.out[s] = h.mapped[s].file.Bytes()
	}
	return err
}

// end ends an evaluation: all have what they need of it or, where it failed, this run is
// over. Mapped files must not go while somebody reads them, and readers are not waited for
// longer than it takes to see that a connection is dead. Other memory lives as long as it is
// read: after a failure it stays on offer, since others may go on with it for a while.
func (h *halo) end(ctx context.Context, failed bool) error {
	mapped := len(h.files) > 0 || slices.ContainsFunc(h.mapped, func(t *table) bool { return t != nil })
	if failed && !mapped {
		return nil
	}
	if mapped {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
	}
	read := h.parcels.withdraw(ctx)
	return errors.Join(h.unmap(read), read)
}

// unmap closes the files of what was offered. Those that may still be read, since waiting
// for readers ended with the error read, stay.
func (h *halo) unmap(read error) (err error) {
	for _, f := range h.files {
		if read == nil {
			err = errors.Join(err, f.Close())
		}
	}
	h.files = nil
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

// close gives back its memory.
func (h *halo) close() {
	h.parcels.stop()
	if h.rows != nil {
		h.rows.Close()
	}
}

// sized returns a slice of n elements of unspecified content: the given one if it is large
// enough.
func sized[E any](s []E, n int) []E {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]E, n)
}
