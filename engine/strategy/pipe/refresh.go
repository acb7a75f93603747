package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// refreshes says whether there are histories.
func (w *Worker) refreshes() bool { return w.Shape.Positions() > 1 }

// newPeriod makes room for the weights of before, and for what histories send on.
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

// PeriodWeights is the weights with which the period under way began, which a run that goes on
// from here must know; none, where nothing depends on them. Who has set them has told
// the worker by Resumed.
func (w *Worker) PeriodWeights() tensor.Matrix {
	if w.Histories != Made {
		return tensor.Matrix{}
	}
	return w.period
}

// Resumed says that PeriodWeights has been set, and that histories are yet to be made of it.
func (w *Worker) Resumed() { w.history = false }

// beginPeriod makes a history if a period begins, or if there is none yet of the one
// under way. Where epochs leave them, that is before the first epoch only.
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
		return nil // as they are
	}
	return w.refresh()
}

// bequeaths says whether the epoch under way leaves its rows as the history of the next: the
// last of a period does, where nobody makes one.
func (w *Worker) bequeaths() bool {
	return w.Histories != Made && w.refreshes() && (w.epoch+1)%w.Period == 0
}

// endPeriod has such an epoch leave its rows, unless going back has done so.
func (w *Worker) endPeriod() {
	if w.Recompute || !w.bequeaths() {
		return
	}
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil {
				w.Device.Combine(l.history, 1, l.rows, 0, tensor.Matrix{})
			}
		}
	}
}

// refresh has all grains go forward side by side, so that all rows are of now, and makes
// histories of what layers see.
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
			if l != nil {
				w.Device.Combine(l.history, 1, l.rows, 0, tensor.Matrix{})
			}
		}
	}
	return nil
}

// earlyTag is that of what goes from stage to stage of a way: beside those of pieces,
// whose numbers begin with a stage of the model's.
func (w *Worker) earlyTag(way int) exchange.Tag {
	index := 2*len(w.infos)*pieces(w.Shape) + way
	return exchange.Tag{Epoch: uint32(w.epoch + 1), Lane: exchange.LaneEarly, Index: uint32(index)}
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
			return fmt.Errorf("take the rows between stages: %w", err)
		}
		b.give(way.grains, rows)
	}
	return nil
}

// refreshLayer is layer for all grains: none keeps anything but its rows, which lie where
// the gradients of the next layer will.
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
		return nil // no layer sees what would come
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
