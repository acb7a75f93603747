package pipe

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// backward has the grains at one place of the order go back through the worker's layers.
func (w *Worker) backward(place int) error {
	p := w.order[place]
	if err := w.turn(p); err != nil {
		return err
	}
	if w.last() {
		w.lose(p)
	} else if err := w.boundary[backwards].receive(place); err != nil {
		return err
	}
	for s := w.end - 1; s >= w.first; s-- {
		if err := w.back(s, p); err != nil {
			return err
		}
	}
	w.tell(backwardDone, place)
	w.boundary[backwards].send(p)
	for _, l := range w.at[p] {
		read(w.Device, l.sum, w.sums.of(w.rooms[l.slot]))
	}
	if w.Recompute && (place > 0 || w.bequeaths()) {
		w.putBack(p)
	}
	return nil
}

// turn makes the grains of a position ready to go back.
func (w *Worker) turn(position int) error {
	if w.Recompute {
		w.seat(position)
	}
	for _, l := range w.at[position] {
		w.Device.Zero(w.rooms[l.slot])
	}
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if w.Recompute {
				if err := w.again(g, way); err != nil {
					return err
				}
			}
			g.pass.Gradients = w.rooms[g.leaf.slot]
			if g.trunk != nil {
				g.trunk.pass.Gradients = g.pass.Gradients
			}
			g.dy = w.alloc(g, g.x)
			g.dcarry = tensor.Matrix{}
			if !g.carry.None() {
				g.dcarry = w.alloc(g, g.carry)
			}
		}
	}
	return nil
}

// alloc is a matrix of a shape that lives as long as the grain's pass.
func (w *Worker) alloc(g *grain, like tensor.Matrix) tensor.Matrix {
	return w.arenas[g.place].Alloc(w.Device.Type(), like.Rows, like.Cols)
}

// lose makes the gradients at the answers.
func (w *Worker) lose(position int) {
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if !g.dcarry.None() {
				w.Device.Zero(g.dcarry)
			}
			if !g.learnt {
				w.Device.Zero(g.dy)
				continue
			}
			// Rounded, so that losses add up to the same in any order.
			const unit = 1 << 24
			w.loss += math.Round(w.Loss(g.dy, g.x, g.labels)*unit) / unit
		}
	}
}

// back goes back through one of the model's stages: first the grains that see rows of
// other ways, so that what is known of the gradient there is on its way while the others
// do. All is added in this order, whatever comes first.
func (w *Worker) back(s, position int) error {
	for _, way := range w.ways {
		w.backSome(way, way.at[position][way.inner[position]:], s)
	}
	if w.sees(s) {
		w.halo.giveBack(s, position)
	}
	for _, way := range w.ways {
		w.backSome(way, way.at[position][:way.inner[position]], s)
	}
	if w.sees(s) {
		if err := w.halo.gradients(s, position); err != nil {
			return err
		}
	}
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if l := way.levels[s-w.first]; l != nil {
				g.dy = g.rowsOf(l.back)
			}
			if s > 0 {
				g.pass.Leave(s, g.dy)
			}
		}
	}
	return nil
}

// backSome has some grains of a way go back to what a stage saw.
func (w *Worker) backSome(of *way, grains []*grain, s int) {
	d := w.Device
	for _, g := range grains {
		if s == 0 && g.trunk != nil {
			w.join(g)
			continue
		}
		if s == 0 && w.infos[s].CarryOut > 0 {
			d.Combine(g.dy, 1, g.dy, 1, g.dcarry)
		}
		dseen := g.pass.Back(s, g.dy, g.dcarry, s > 0)
		l := of.levels[s-w.first]
		if l == nil {
			g.dy = dseen
			continue
		}
		// The first are computed now, and their rows are of now; what the others were
		// given are histories, half of which are of use.
		if late := len(g.rows) - g.active; late > 0 && w.Factor != 1 {
			d.Combine(dseen.RowRange(g.active, late), w.Factor, dseen.RowRange(g.active, late), 0, tensor.Matrix{})
		}
		w.keep(g, s, dseen)
		d.ScatterAdd(l.back, dseen, g.rows)
	}
}

// join brings a grain's gradient to its trunk, which goes back when it has that of both:
// the second grain is first.
func (w *Worker) join(g *grain) {
	t := g.trunk
	if g.from > 0 {
		t.dy = w.alloc(t, t.x)
	}
	w.Device.Combine(t.dy.RowRange(g.from, len(g.vertices)), 1, g.dy, 0, tensor.Matrix{})
	if g.from == 0 {
		t.pass.Back(0, t.dy, tensor.Matrix{}, false)
	}
}
