package pipe

import (
	"context"
	"math"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// backward has the grains at one place of the order go back through the worker's layers.
func (w *Worker) backward(ctx context.Context, place int) error {
	p := w.order[place]
	if err := w.turn(p); err != nil {
		return err
	}
	if w.last() {
		w.lose(p)
	} else if err := w.boundary[backwards].receive(ctx, place); err != nil {
		return err
	}
	for s := w.end - 1; s >= w.first; s-- {
		if err := w.back(ctx, s, p); err != nil {
			return err
		}
	}
	w.tell(backwardDone, place)
	w.boundary[backwards].send(p)
	for _, way := range w.ways {
		for _, g := range way.at[p] {
			read(w.Device, g.sum, w.sums.of(g.pass.Gradients))
		}
	}
	return nil
}

// turn makes the grains of a position ready to go back.
func (w *Worker) turn(position int) error {
	if w.Recompute {
		w.seat(position)
	}
	n := 0
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if w.Recompute {
				if err := w.again(g); err != nil {
					return err
				}
			}
			g.pass.Gradients = w.rooms[n]
			w.Device.Zero(g.pass.Gradients)
			n++
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

// back goes back through one of the model's stages.
func (w *Worker) back(ctx context.Context, s, position int) error {
	d := w.Device
	for _, way := range w.ways {
		for _, g := range way.at[position] {
			if s == 0 && w.infos[s].CarryOut > 0 {
				d.Combine(g.dy, 1, g.dy, 1, g.dcarry)
			}
			dseen := g.pass.Back(s, g.dy, g.dcarry, s > 0)
			l := way.levels[s-w.first]
			if l == nil {
				g.dy = dseen
				continue
			}
			// The first are computed now, and their rows are of now; what the others
			// were given are histories, half of which are of use.
			if late := len(g.rows) - g.active; late > 0 && w.Factor != 1 {
				d.Combine(dseen.RowRange(g.active, late), w.Factor, dseen.RowRange(g.active, late), 0, tensor.Matrix{})
			}
			w.keep(g, s, dseen)
			d.ScatterAdd(l.back, dseen, g.rows)
		}
	}
	if w.sees(s) {
		if err := w.halo.gradients(ctx, s, position); err != nil {
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
