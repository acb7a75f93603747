package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// whole is what parts over all vertices read and where they put what they make. It
// stays from one use to the next.
type whole struct {
	ready  bool
	block  sample.Block
	batch  sample.Batch // that the block is of, if it is not the whole graph's
	ids    []uint32     // of its sources
	input  nn.Input
	sparse features.Rows
	rows   tensor.Arena // of dense input
	// Where rows of the halo are needed, those of both lie here.
	joined table
	// What a stage reads lies in one lane, what travels beside it perhaps in
	// another, and the third is free for what it makes.
	lanes [3]tensor.Arena
}

type lane struct {
	arena tensor.Arena
	pass  *nn.Pass
}

func (i *inference) runWhole(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if err := i.readWhole(ctx, stages); err != nil {
		return err
	}
	w := &i.whole
	var x, carry tensor.Matrix
	inX, inCarry := -1, -1 // lanes
	for s, stage := range i.stages[:stages] {
		if err := i.next(ctx); err != nil {
			return err
		}
		free := 0
		for free == inX || free == inCarry {
			free++
		}
		block := &w.block
		if stage.Hops == 0 {
			block = nil
		}
		pass, err := i.lane(free, s)
		if err != nil {
			return err
		}
		y, next := pass.Stage(s, block, w.input, x, carry)
		if next.None() || next.Base() != carry.Base() {
			inCarry = free
		}
		x, carry, inX = y, next, free
		if i.exchanged(s, stages) {
			if x, err = i.join(s, x); err != nil {
				return err
			}
		}
	}
	return yield(0, i.answer(stages, x, carry))
}

// lane is a lane, empty, that holds what a stage makes. All but the first are made
// for it, since one that grows takes more than it needs.
func (i *inference) lane(l, s int) (*nn.Pass, error) {
	w := &i.whole
	if need := int(i.wholeStage(s)); l > 0 && (w.lanes[l] == nil || w.lanes[l].Bytes() < need) {
		if w.lanes[l] != nil {
			w.lanes[l].Close()
		}
		arena, err := i.device.NewArena(need)
		if err != nil {
			w.lanes[l] = nil
			return nil, err
		}
		w.lanes[l] = arena
	}
	if of := &i.lanes[l]; of.arena != w.lanes[l] {
		*of = lane{w.lanes[l], i.over(i.device, w.lanes[l])}
	}
	w.lanes[l].Reset()
	return i.lanes[l].pass, nil
}

// join is the rows after a stage with those of the halo behind them.
func (i *inference) join(s int, y tensor.Matrix) (tensor.Matrix, error) {
	t := &i.whole.joined
	if len(i.halo.ids) > 0 {
		t.arena.Reset()
		t.x = t.arena.Alloc(i.device.Type(), i.sources(), y.Cols)
		i.device.Combine(t.x.RowRange(0, y.Rows), 1, y, 0, tensor.Matrix{})
	}
	if err := i.halo.bring(i, s, y, t); err != nil {
		return y, fmt.Errorf("run %s over all vertices: %w", i.stages[s].Name, err)
	}
	if len(i.halo.ids) == 0 {
		return y, nil
	}
	return t.x, nil
}

// readWhole makes what parts over all vertices read.
func (i *inference) readWhole(ctx context.Context, stages int) (err error) {
	w := &i.whole
	i.inFile = false
	if w.ready {
		return nil
	}
	w.lanes[0] = i.work
	w.ids = i.own.vertices(w.ids[:0], 0, i.own.rows)
	places, far := w.ids, (*features.Far)(nil)
	if h := i.halo; h != nil {
		if places, far, err = i.readHalo(ctx, stages); err != nil {
			return err
		}
	} else if i.model.Hops() > 0 {
		if err := i.sampler.Part(&w.block, 0, i.own.rows); err != nil {
			return err
		}
	}
	w.input = nn.Input{Vertices: w.ids}
	if i.data.features.Sparse() {
		i.data.features.Fill(&w.sparse, places, false, far)
		w.input.Sparse, w.ready = &w.sparse.CSR, true
		i.halo.drop()
		return nil
	}
	columns := i.data.features.Columns()
	if w.rows, err = i.device.NewArena(len(places) * columns * i.device.Type().Bytes()); err != nil {
		return err
	}
	w.input.Dense = w.rows.Alloc(i.device.Type(), len(places), columns)
	i.work.Reset()
	i.fill(w.input.Dense, places, far)
	w.ready = true
	i.halo.drop()
	return nil
}

// close gives back all but the arena that is the first lane's, which is another's.
func (i *inference) close() {
	if i.whole.rows != nil {
		i.whole.rows.Close()
	}
	if i.whole.joined.arena != nil {
		i.whole.joined.arena.Close()
	}
	i.halo.close()
	i.distant.close()
	for _, a := range i.whole.lanes[1:] {
		if a != nil {
			a.Close()
		}
	}
	i.whole = whole{}
}
