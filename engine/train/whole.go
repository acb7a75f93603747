package train

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// whole is what parts over the whole graph read and where they put what they make.
// It stays from one use to the next.
type whole struct {
	ready bool
	block sample.Block
	input nn.Input
	rows  tensor.Arena // of dense input
	// What a stage reads lies in one lane, what travels beside it perhaps in
	// another, and the third is free for what it makes.
	lanes [3]lane
}

type lane struct {
	arena tensor.Arena
	pass  *nn.Pass
}

func (i *inference) runWhole(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if err := i.readWhole(); err != nil {
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
	}
	return yield(0, i.answer(stages, x, carry))
}

// lane is a lane, empty, that holds what a stage makes. All but the first are made
// for it, since one that grows takes more than it needs.
func (i *inference) lane(l, s int) (*nn.Pass, error) {
	w := &i.whole
	if need := int(i.wholeStage(s)); l > 0 && (w.lanes[l].arena == nil || w.lanes[l].arena.Bytes() < need) {
		if w.lanes[l].arena != nil {
			w.lanes[l].arena.Close()
		}
		arena, err := i.device.NewArena(need)
		if err != nil {
			w.lanes[l] = lane{}
			return nil, err
		}
		w.lanes[l] = lane{arena, i.model.NewPass(i.device, arena)}
		w.lanes[l].pass.Weights = i.pass.Weights
	}
	w.lanes[l].arena.Reset()
	return w.lanes[l].pass, nil
}

// readWhole makes what parts over the whole graph read.
func (i *inference) readWhole() (err error) {
	w, n := &i.whole, i.data.topology.Vertices()
	if w.ready {
		return nil
	}
	w.lanes[0] = lane{i.work, i.pass}
	if i.model.Hops() > 0 {
		if err := i.sampler.Part(&w.block, 0, n); err != nil {
			return err
		}
	}
	all := i.consecutive(0, n)
	w.input = nn.Input{Vertices: all}
	if i.data.features.Sparse() {
		i.data.features.Fill(&i.sparse, all, false)
		w.input.Sparse, w.ready = &i.sparse.CSR, true
		return nil
	}
	columns := i.data.features.Columns()
	if w.rows, err = i.device.NewArena(n * columns * 4); err != nil {
		return err
	}
	w.input.Dense = w.rows.Alloc(i.device.Type(), n, columns)
	i.work.Reset()
	i.data.features.Dense(i.device, i.work, w.input.Dense, all)
	w.ready = true
	return nil
}

// close gives back all but the arena that is the first lane's, which is another's.
func (i *inference) close() {
	if i.whole.rows != nil {
		i.whole.rows.Close()
	}
	for _, l := range i.whole.lanes[1:] {
		if l.arena != nil {
			l.arena.Close()
		}
	}
	i.whole = whole{}
}
