package pipe

import (
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/footprint"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/plots"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// allocate makes the rows of all levels, and the passes.
func allocate(w *Worker) (err error) {
	d := w.Device
	if w.kept, err = d.NewArena(keeps(w)); err != nil {
		return err
	}
	zeros := func(rows, cols int) tensor.Matrix {
		m := w.kept.Alloc(d.Type(), rows, cols)
		d.Zero(m)
		return m
	}
	next := 0 // among histories
	for _, way := range w.ways {
		var two []tensor.Matrix // where levels are fleeting
		seen := 0
		for s := w.first; s < w.end; s++ {
			var l *level
			switch cols := w.infos[s].In; {
			case w.sees(s) && w.fleeting():
				if len(two) < 2 {
					two = append(two, zeros(1, way.all()*w.columns()))
				}
				rows := two[seen%2].View(0, 1, 0, way.all()*cols).Reshape(way.all(), cols)
				l = &level{rows: rows, back: rows}
				seen++
			case w.sees(s):
				l = &level{rows: zeros(way.all(), cols)}
				l.back = l.rows
				if !footprint.Replaces(w.Model, s, w.refreshes() && !w.Recompute) {
					l.back = zeros(way.all(), cols)
				}
				if l.past = w.remembers(s); l.past {
					l.at = next
					next += plain.Size(l.rows)
				}
			}
			way.levels = append(way.levels, l)
		}
	}
	if w.first > 0 {
		receives(w, zeros)
	}
	w.keepLate()
	if w.going, err = d.NewArena(loadOf(w).going()); err != nil {
		return err
	}
	return allocatePasses(w)
}

// receives makes the rows that come from the stage before: where they are kept briefly, all
// positions have the same.
func receives(w *Worker, zeros func(rows, cols int) tensor.Matrix) {
	in, carry := w.infos[w.first].In, w.infos[w.first].CarryIn
	var all tensor.Matrix
	if _, briefly := footprint.Inputs(w.Model, w.first, w.Recompute); briefly > 0 {
		all = zeros(loadOf(w).most(), in)
	}
	for p := range w.at {
		next := 0
		for _, way := range w.ways {
			for _, g := range way.at[p] {
				if all.None() {
					g.input = zeros(len(g.vertices), in)
				} else {
					g.input = all.RowRange(next, len(g.vertices))
				}
				if carry > 0 {
					g.carried = zeros(len(g.vertices), carry)
				}
				next += len(g.vertices)
			}
		}
	}
}

// allocatePasses makes a pass for each grain or, where they are computed again, for each
// one at a position, and room for the gradients of a position's leaves.
func allocatePasses(w *Worker) error {
	for range w.slots() {
		w.rooms = append(w.rooms, w.kept.Alloc(w.Device.Type(), 1, w.Model.Size()))
	}
	l := loadOf(w)
	var err error
	if w.ground, err = w.Device.NewArena(l.passes()); err != nil {
		return err
	}
	for _, bytes := range l.places() {
		a := plots.New(w.Device, plain.Of(w.ground.Alloc(w.Device.Type(), 1, plots.Round(bytes)/w.Device.Type().Bytes())))
		p := w.Model.NewPass(w.Device, a)
		p.Weights, p.Train, p.Scratch = w.Weights, true, w.spare
		w.arenas, w.passes = append(w.arenas, a), append(w.passes, p)
	}
	return nil
}
