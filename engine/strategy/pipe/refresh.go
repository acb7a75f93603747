package pipe

import (
	"context"
	"fmt"
	"time"

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
func (w *Worker) beginPeriod(ctx context.Context) error {
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
	return w.refresh(ctx)
}

// endPeriod has the last epoch of a period leave its rows as the history of the next.
func (w *Worker) endPeriod() {
	if w.Histories == Made || !w.refreshes() || (w.epoch+1)%w.Period != 0 {
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
func (w *Worker) refresh(ctx context.Context) error {
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
	if err := w.receiveAll(ctx); err != nil {
		return err
	}
	for s := w.first; s < w.end; s++ {
		if err := w.refreshLayer(ctx, s); err != nil {
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

// earlyTag is that of what goes from stage to stage of a way: beside those of parcels,
// whose numbers begin with a stage of the model's.
func (w *Worker) earlyTag(way int) exchange.Tag {
	index := 2*len(w.infos)*parcels(w.Shape) + way
	return exchange.Tag{Epoch: uint32(w.epoch + 1), Lane: exchange.LaneEarly, Index: uint32(index)}
}

// receiveAll takes the rows of all vertices from the stage before.
func (w *Worker) receiveAll(ctx context.Context) error {
	b := w.boundary[forwards]
	for _, g := range w.grains {
		g.x, g.carry = g.input, g.carried
	}
	if b.in == nil {
		return nil
	}
	defer w.since(time.Now())
	for _, way := range w.ways {
		if way.own() == 0 {
			continue // nothing is offered
		}
		rows := room(way.own() * b.columns(b.in.stage) * w.Device.Type().Bytes())
		node := w.Seats.Node(b.in.stage, way.number)
		if err := w.take(ctx, node, w.earlyTag(way.number), rows); err != nil {
			return fmt.Errorf("take the rows between stages from node %s: %w", w.Work.Nodes[node], err)
		}
		b.give(way.grains, rows)
	}
	return nil
}

// refreshLayer is layer for all grains: none keeps anything but its rows, which lie where
// the gradients of the next layer will.
func (w *Worker) refreshLayer(ctx context.Context, s int) error {
	d, none := w.Device, tensor.Matrix{}
	for _, way := range w.ways {
		l := way.levels[s-w.first]
		for _, g := range way.grains {
			if l != nil {
				w.restart(g)
				d.Combine(g.rowsOf(l.rows), 1, g.pass.Enter(s, g.x, g.vertices), 0, none)
			}
		}
	}
	if w.sees(s) {
		for p := range w.Shape.Positions() {
			if err := w.halo.rows(ctx, s, p); err != nil {
				return err
			}
		}
	}
	if s == len(w.infos)-1 || s+1 < w.end && w.infos[s+1].Hops == 0 {
		return nil // no layer sees what would come
	}
	for _, way := range w.ways {
		l, to := way.levels[s-w.first], way.answers
		if s+1 < w.end {
			to = way.levels[s+1-w.first].back
		}
		for _, g := range way.grains {
			w.restart(g)
			w.enter(g, s)
			if l != nil {
				if !w.Recompute {
					g.seen[s-w.first] = w.arenas[g.place].Alloc(d.Type(), len(g.rows), w.infos[s].In)
				}
				d.Gather(g.seen[s-w.first], []tensor.Part{{X: l.rows}}, unsigned(g.rows))
			}
			if err := w.see(g, s); err != nil {
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
