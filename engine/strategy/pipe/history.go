package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/footprint"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// refreshes reports whether there are histories.
func (w *Worker) refreshes() bool { return w.Shape.Positions() > 1 }

// newPeriod makes room for earlier weights.
func (w *Worker) newPeriod() (err error) {
	d := w.Device
	if w.early, err = d.NewArena(w.Model.Size()*d.Type().Bytes() + footprint.Ends); err != nil {
		return err
	}
	w.period = w.early.Alloc(d.Type(), 1, w.Model.Size())
	d.Zero(w.period)
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
func (w *Worker) endPeriod() error {
	if w.Recompute || !w.leavesHistory() {
		return nil
	}
	return w.rememberAll()
}

// rememberAll makes the rows of all layers histories.
func (w *Worker) rememberAll() error {
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil && l.past {
				if err := w.remember(l, 0, l.rows); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
	return w.rememberAll()
}

// earlyTag returns that of what goes from stage to stage of a way at a position, with indices
// above those of pieces.
func (w *Worker) earlyTag(way, position int) exchange.Tag {
	index := 2*len(w.infos)*pieces(w.Shape) + way*w.Shape.Positions() + position
	t := w.net.Stamp(w.epoch)
	t.Lane, t.Index = exchange.LaneEarly, uint32(index)
	return t
}

// receiveAll takes the rows of all vertices from the stage before, and shows them.
func (w *Worker) receiveAll() error {
	b := w.boundary[forwards]
	for _, g := range w.grains {
		g.x, g.carry = g.input, g.carried
	}
	if b.in == nil {
		return nil
	}
	b.started = 0
	for range b.fetches {
		b.aheadEarly()
	}
	for p := range w.Shape.Positions() {
		if err := b.arrive(p, p); err != nil {
			return fmt.Errorf("fetch the rows of the stage before: %w", err)
		}
		b.aheadEarly()
		for _, way := range w.ways {
			for _, g := range way.at[p] {
				w.restart(g)
				w.show(g, way, w.first)
			}
		}
	}
	return nil
}

// refreshLayer is layer for all grains. Nothing is kept but their rows, in the memory of
// the next layer's gradients, and the last layer's are sent as soon as a position has them.
func (w *Worker) refreshLayer(s int) error {
	d, none := w.Device, tensor.Matrix{}
	for _, way := range w.ways {
		l := way.levels[s-w.first]
		for _, g := range way.grains {
			if l != nil && s > w.first { // the first one's have been shown
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
	for i, way := range w.ways {
		for p, grains := range way.at {
			var sent offering
			if s+1 == w.end {
				sent = w.boundary[forwards].claim(i, p, w.earlyTag(way.number, p))
			}
			for at, g := range grains {
				w.restart(g)
				w.enter(g, s)
				if err := w.see(g, way, s); err != nil {
					return err
				}
				if s+1 == w.end {
					if s == 0 && w.infos[s].CarryOut > 0 {
						g.carry = g.x
					}
					w.boundary[forwards].put(sent, grains, at)
					continue
				}
				y := g.rowsOf(way.levels[s+1-w.first].back)
				d.Combine(y, 1, g.x, 0, none)
				g.x = y
				if s == 0 && w.infos[s].CarryOut > 0 {
					g.carry = y
				}
			}
			w.boundary[forwards].give(sent)
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

// remembers reports whether an epoch begins with a history of the rows that a stage reads.
func (w *Worker) remembers(s int) bool { return w.refreshes() && w.sees(s) && !w.gathers(s) }

// makePast makes room for histories: in a file, since an epoch reads them once, from the
// beginning to the end.
func (w *Worker) makePast() (err error) {
	n := 0
	for s := w.first; s < w.end; s++ {
		for _, way := range w.ways {
			if w.remembers(s) {
				n += way.all() * w.infos[s].In * w.Device.Type().Bytes()
			}
		}
	}
	if n > 0 {
		// A full disk may have left blocks in memory.
		w.past, err = shelf.NewRows(w.Blocks.Dir, n, w.Blocks.Spare-min(w.Blocks.Spare, w.blocks.Held()))
	}
	return err
}

// recalls returns some rows of a level's history.
func (w *Worker) recalls(l *level, first, count int) []byte {
	row := l.rows.Cols * l.rows.Type.Bytes()
	if count == 0 {
		return nil // and there may be no others
	}
	return w.past.Bytes()[l.at:][first*row:][:count*row]
}

// remember makes some rows the history of a level from a row on.
func (w *Worker) remember(l *level, first int, rows tensor.Matrix) error {
	if rows.Rows == 0 {
		return nil
	}
	return w.past.Write(plain.Of(rows), l.at+first*rows.Cols*rows.Type.Bytes())
}

// putBack restores the histories of a position, which earlier positions read when they went
// forward: those have yet to go back. Where the epoch leaves its rows, they become the
// history of the next.
func (w *Worker) putBack(position int) error {
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l == nil || !l.past {
				continue
			}
			for _, r := range way.turn[position] {
				rows, left := l.rows.RowRange(r.first, r.count), tensor.Matrix{}
				if w.leavesHistory() {
					w.spare.Reset()
					left = w.spare.Alloc(w.Device.Type(), rows.Rows, rows.Cols)
					w.Device.Combine(left, 1, rows, 0, tensor.Matrix{})
				}
				plain.Write(w.Device, rows, w.recalls(l, r.first, r.count))
				if left.None() {
					continue
				}
				if err := w.remember(l, r.first, left); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
