package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// refreshes reports whether there are histories.
func (w *Worker) refreshes() bool { return w.Shape.Positions() > 1 }

// newPeriod makes room for earlier weights, and for what histories send on.
func (w *Worker) newPeriod() (err error) {
	d, columns := w.Device, 0
	if w.ways != nil && !w.last() {
		columns = w.infos[w.end].In
	}
	bytes, ends := w.Model.Size(), 64*(1+len(w.ways))
	for _, way := range w.ways {
		bytes += way.own() * columns
	}
	if w.early, err = d.NewArena(bytes*d.Type().Bytes() + ends); err != nil {
		return err
	}
	w.period = w.early.Alloc(d.Type(), 1, w.Model.Size())
	d.Zero(w.period)
	for _, way := range w.ways {
		way.answers = w.early.Alloc(d.Type(), way.own(), columns)
	}
	return nil
}

// PeriodWeights returns the weights with which the current period began. A run that resumes
// here must set them and call Resumed. There are none where nothing depends on them.
func (w *Worker) PeriodWeights() tensor.Matrix {
	if w.Histories != Made {
		return tensor.Matrix{}
	}
	return w.period
}

// Resumed must be called when PeriodWeights has been set: their history is made anew.
func (w *Worker) Resumed() { w.history = false }

// beginPeriod makes a history if a period begins, or if the current one has none yet. Where
// epochs leave histories, that is before the first epoch only.
func (w *Worker) beginPeriod() error {
	if !w.refreshes() {
		return nil
	}
	begins := w.epoch%w.Period == 0
	if w.Histories != Made {
		begins = !w.history
	}
	if begins {
		w.Device.Combine(w.period, 1, w.Weights, 0, tensor.Matrix{})
		w.history = false
	}
	if w.history || w.ways == nil {
		return nil
	}
	w.history = true
	if w.Histories == Zeros && w.epoch == 0 {
		return nil // the history stays as it is
	}
	return w.refresh()
}

// leavesHistory reports whether this epoch leaves its rows as the history of the next one:
// the last of a period does, where none are made.
func (w *Worker) leavesHistory() bool {
	return w.Histories != Made && w.refreshes() && (w.epoch+1)%w.Period == 0
}

// endPeriod keeps the rows of such an epoch, unless backward has done so.
func (w *Worker) endPeriod() {
	if w.Recompute || !w.leavesHistory() {
		return
	}
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil && !l.history.None() {
				w.Device.Combine(l.history, 1, l.rows, 0, tensor.Matrix{})
			}
		}
	}
}

// refresh computes all grains forward side by side, so that all rows are current, and makes
// histories of what layers read.
func (w *Worker) refresh() error {
	w.halo.early = true
	train := len(w.passes) > 0 && w.passes[0].Train // a node's ways may have no vertices
	for _, p := range w.passes {
		p.Train, p.Weights = false, w.period
	}
	defer func() {
		w.halo.early = false
		for _, p := range w.passes {
			p.Train, p.Weights = train, w.Weights
		}
	}()
	if err := w.receiveAll(); err != nil {
		return err
	}
	w.halo.beginEarly()
	for s := w.first; s < w.end; s++ {
		if err := w.refreshLayer(s); err != nil {
			return err
		}
	}
	if out := w.boundary[forwards].out; out != nil {
		for i, way := range w.ways {
			w.boundary[forwards].offer(w.earlyTag(way.number), out.history[i], way.grains)
		}
	}
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil && !l.history.None() {
				w.Device.Combine(l.history, 1, l.rows, 0, tensor.Matrix{})
			}
		}
	}
	return nil
}

// earlyTag returns that of what goes from stage to stage of a way, with indices above those
// of pieces.
func (w *Worker) earlyTag(way int) exchange.Tag {
	index := 2*len(w.infos)*pieces(w.Shape) + way
	t := w.stamp(w.epoch)
	t.Lane, t.Index = exchange.LaneEarly, uint32(index)
	return t
}

// receiveAll takes the rows of all vertices from the stage before.
func (w *Worker) receiveAll() error {
	b := w.boundary[forwards]
	for _, g := range w.grains {
		g.x, g.carry = g.input, g.carried
	}
	if b.in == nil {
		return nil
	}
	for i, way := range w.ways {
		if way.own() == 0 {
			continue // nothing is offered
		}
		rows := room(way.own() * b.columns(b.in.stage) * w.Device.Type().Bytes())
		f := b.fetches[0][i]
		f.start(w.earlyTag(way.number), rows)
		if err := f.wait(); err != nil {
			return fmt.Errorf("fetch the rows of the stage before: %w", err)
		}
		b.give(way.grains, rows)
	}
	return nil
}

// refreshLayer is layer for all grains. Nothing is kept but their rows, in the memory of
// the next layer's gradients.
func (w *Worker) refreshLayer(s int) error {
	d, none := w.Device, tensor.Matrix{}
	for _, way := range w.ways {
		l := way.levels[s-w.first]
		for _, g := range way.grains {
			if l != nil {
				w.restart(g)
				w.show(g, way, s)
			}
		}
	}
	if w.sees(s) {
		for p := range w.Shape.Positions() {
			if err := w.halo.rows(s, p); err != nil {
				return err
			}
		}
	}
	if s == len(w.infos)-1 || s+1 < w.end && w.infos[s+1].Hops == 0 {
		return nil // no layer reads the result
	}
	for _, way := range w.ways {
		to := way.answers
		if s+1 < w.end {
			to = way.levels[s+1-w.first].back
		}
		for _, g := range way.grains {
			w.restart(g)
			w.enter(g, s)
			if err := w.see(g, way, s); err != nil {
				return err
			}
			y := g.rowsOf(to)
			d.Combine(y, 1, g.x, 0, none)
			g.x = y
			if s == 0 && w.infos[s].CarryOut > 0 {
				g.carry = y
			}
		}
	}
	return nil
}

// restart gives a grain a pass that keeps nothing for another.
func (w *Worker) restart(g *grain) {
	w.arenas[0].Reset()
	g.place, g.pass = 0, w.passes[0]
	g.pass.Begin()
	g.pass.Gradients = w.rooms[0]
}

// putBack restores the histories of a position, which earlier positions read when they went
// forward: those have yet to go back. Where the epoch leaves its rows, they become the
// history of the next.
func (w *Worker) putBack(position int) {
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l == nil || l.history.None() {
				continue
			}
			for _, r := range way.turn[position] {
				rows, history := l.rows.RowRange(r.first, r.count), l.history.RowRange(r.first, r.count)
				if w.leavesHistory() {
					w.spare.Reset()
					left := w.spare.Alloc(w.Device.Type(), rows.Rows, rows.Cols)
					w.Device.Combine(left, 1, rows, 0, tensor.Matrix{})
					w.Device.Combine(rows, 1, history, 0, tensor.Matrix{})
					w.Device.Combine(history, 1, left, 0, tensor.Matrix{})
					continue
				}
				w.Device.Combine(rows, 1, history, 0, tensor.Matrix{})
			}
		}
	}
}
