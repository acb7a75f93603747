package pipe

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// backward takes the grains at one place of the order back through the worker's layers.
func (w *Worker) backward(place int) error {
	p := w.order[place]
	if err := w.beginBackward(p); err != nil {
		return err
	}
	if w.last() {
		w.lossGradients(p)
	} else if err := w.boundary[backwards].receive(place); err != nil {
		return err
	}
	for s := w.end - 1; s >= w.begins(); s-- {
		if err := w.back(s, p); err != nil {
			return err
		}
	}
	w.traced(backwardDone, place)
	w.boundary[backwards].send(p)
	for _, l := range w.at[p] {
		plain.Read(w.Device, l.sum, w.sums.of(w.rooms[l.slot]))
	}
	if w.Recompute && (place > 0 || w.leavesHistory()) {
		return w.putBack(p)
	}
	return nil
}

// beginBackward prepares the grains of a position.
func (w *Worker) beginBackward(position int) error {
	if w.Recompute {
		w.beginPasses(position)
	}
	for _, l := range w.at[position] {
		w.Device.Zero(w.rooms[l.slot])
	}
	w.going.Reset()
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
			g.dy = w.like(g.x)
			g.dcarry = tensor.Matrix{}
			if !g.carry.None() {
				g.dcarry = w.like(g.carry)
			}
		}
	}
	return nil
}

// like returns a matrix of the shape of another that lives until the next position goes back.
func (w *Worker) like(m tensor.Matrix) tensor.Matrix {
	return w.going.Alloc(w.Device.Type(), m.Rows, m.Cols)
}

// lossGradients sets the gradients at the answers, and adds up the loss.
func (w *Worker) lossGradients(position int) {
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if !g.dcarry.None() {
				w.Device.Zero(g.dcarry)
			}
			if g.labels == nil {
				w.Device.Zero(g.dy)
				continue
			}
			// Rounded, so that losses have the same sum in any order.
			const unit = 1 << 24
			w.loss += math.Round(w.Loss(g.dy, g.x, g.labels)*unit) / unit
		}
	}
}

// back goes back through one of the model's stages. Grains that read rows of other ways
// come first, so that their gradients are sent while the others are computed. All is added
// in this order, whatever comes first.
func (w *Worker) back(s, position int) error {
	if w.fleeting() && w.sees(s) {
		w.halo.clear(s)
	}
	for _, way := range w.ways {
		if err := w.backSome(way, way.at[position][way.inner[position]:], s); err != nil {
			return err
		}
	}
	if w.meets(s) {
		w.halo.giveBack(s, position)
	}
	for _, way := range w.ways {
		if err := w.backSome(way, way.at[position][:way.inner[position]], s); err != nil {
			return err
		}
	}
	if w.gathers(s) {
		return nil // until all positions have gone back
	}
	if w.meets(s) {
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

// backSome takes some grains of a way back to what a stage read.
func (w *Worker) backSome(of *way, grains []*grain, s int) error {
	d := w.Device
	for _, g := range grains {
		if s == 0 && g.trunk != nil {
			if err := w.join(g); err != nil {
				return err
			}
			continue
		}
		if s == 0 {
			if _, err := w.input(g); err != nil {
				return err
			}
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
		// The first are computed now, and their rows are current. The others are histories,
		// half of which are of use.
		if late := len(g.rows) - g.active; late > 0 && w.Factor != 1 && !w.gathers(s) {
			d.Combine(dseen.RowRange(g.active, late), w.Factor, dseen.RowRange(g.active, late), 0, tensor.Matrix{})
		}
		w.keep(g, s, dseen)
		d.ScatterAdd(l.back, dseen, g.rows)
		g.pass.Drop(dseen)
	}
	return nil
}

// join adds a grain's gradient to its trunk. The trunk goes back when it has those of both
// grains: the second one comes first.
func (w *Worker) join(g *grain) error {
	t := g.trunk
	if g.from > 0 {
		t.dy = w.like(t.x)
	}
	w.Device.Combine(t.dy.RowRange(g.from, len(g.vertices)), 1, g.dy, 0, tensor.Matrix{})
	if g.from > 0 {
		return nil
	}
	_, err := w.input(t)
	if err == nil {
		t.pass.Back(0, t.dy, tensor.Matrix{}, false)
	}
	return err
}

// multiplyBack goes back from the gradients at all products, and completes those of shards.
// Products are made again, since passes keep nothing of features.
func (w *Worker) multiplyBack() error {
	if !w.multiplies() {
		return nil
	}
	for p := range w.Shape.Positions() {
		w.halo.giveBack(productsAt, p)
	}
	for p := range w.Shape.Positions() {
		if err := w.halo.gradients(productsAt, p); err != nil {
			return err
		}
	}
	d, n := w.Device, w.infos[0].In*w.infos[0].Out // weights, which are the first of all
	for p, leaves := range w.at {
		for _, l := range leaves {
			room := w.rooms[0].View(0, 1, 0, n)
			d.Zero(room)
			for _, way := range w.ways {
				for _, g := range way.at[p] {
					if g.leaf != l {
						continue
					}
					if err := w.product(g, way); err != nil {
						return err
					}
					g.pass.Back(0, g.rowsOf(way.levels[productsAt].back), tensor.Matrix{}, false)
				}
			}
			plain.Read(d, l.sum[:plain.Size(room)], room)
		}
	}
	return nil
}

// late is what a grain keeps of the gradients at rows of other positions for the next
// epoch, where last epoch's gradients replace lost ones. A gradient is lost if the row's
// position has gone backward before the grain's.
type late struct {
	position  int             // of the grain
	positions []int           // of each such row
	kept      []tensor.Matrix // of the last epoch, by the worker's stages
	// In this epoch: which of those rows go backward earlier, and their places among the
	// way's rows.
	picks, rows []int32
	from        [1]tensor.Part // what is gathered from; here, so that no epoch allocates it
}

// keepsLate reports whether gradients are kept for the next epoch.
func (w *Worker) keepsLate() bool { return w.Kept && w.Shape.Positions() > 1 }

// keepLate makes room for them, with zeros.
func (w *Worker) keepLate() {
	if !w.keepsLate() {
		return
	}
	w.turns = make([]int, w.Shape.Positions())
	for _, way := range w.ways {
		for position, grains := range way.at {
			for _, g := range grains {
				n := len(g.rows) - g.active
				g.late = late{position: position, kept: make([]tensor.Matrix, w.end-w.first), picks: make([]int32, 0, n), rows: make([]int32, 0, n)}
				for _, v := range g.block.Vertices[g.active:] {
					g.late.positions = append(g.late.positions, w.Shape.PositionOf(v))
				}
				for s := w.begins(); s < w.end; s++ {
					if w.sees(s) && !w.gathers(s) {
						m := w.kept.Alloc(w.Device.Type(), n, w.infos[s].In)
						w.Device.Zero(m)
						g.late.kept[s-w.first] = m
					}
				}
			}
		}
	}
}

// standIn begins an epoch with the gradients that the last one found at rows which will go
// backward earlier.
func (w *Worker) standIn() {
	if !w.keepsLate() {
		return
	}
	for place, position := range w.order {
		w.turns[position] = place
	}
	for _, way := range w.ways {
		for _, g := range way.grains {
			g.late.choose(w.turns, g.rows[g.active:])
			if len(g.late.picks) == 0 {
				continue
			}
			for i, l := range way.levels {
				if l == nil || !l.past {
					continue
				}
				w.spare.Reset()
				x := w.spare.Alloc(w.Device.Type(), len(g.late.picks), l.rows.Cols)
				g.late.from[0].X = g.late.kept[i]
				w.Device.Gather(x, g.late.from[:], unsigned(g.late.picks))
				w.Device.ScatterAdd(l.back, x, g.late.rows)
			}
		}
	}
}

// choose finds the rows of others that go back before the grain, because they go forward
// after it.
func (l *late) choose(turns []int, rows []int32) {
	l.picks, l.rows = l.picks[:0], l.rows[:0]
	for i, position := range l.positions {
		if turns[position] > turns[l.position] {
			l.picks, l.rows = append(l.picks, int32(i)), append(l.rows, rows[i])
		}
	}
}

// keep keeps a grain's gradients for the next epoch.
func (w *Worker) keep(g *grain, s int, dseen tensor.Matrix) {
	if n := len(g.rows) - g.active; w.keepsLate() && n > 0 && !w.gathers(s) {
		w.Device.Combine(g.late.kept[s-w.first], 1, dseen.RowRange(g.active, n), 0, tensor.Matrix{})
	}
}
