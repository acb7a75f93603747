package evaluate

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// whole is what parts over all vertices read, and where their results lie. It stays from one
// use to the next.
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

func (i *Inference) runWhole(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if err := i.readWhole(ctx, stages); err != nil {
		return err
	}
	w := &i.whole
	var x, carry tensor.Matrix
	inX, inCarry := -1, -1 // lanes
	for s, stage := range i.now.stages[:stages] {
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

// lane returns an empty lane that has room for the results of a stage. All but the first are
// made for it, since an arena that grows takes more than it needs.
func (i *Inference) lane(l, s int) (*nn.Pass, error) {
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
	if of := &i.now.lanes[l]; of.arena != w.lanes[l] {
		*of = lane{w.lanes[l], i.now.over(i.device, w.lanes[l])}
	}
	w.lanes[l].Reset()
	return i.now.lanes[l].pass, nil
}

// join returns the rows after a stage with those of the halo behind them.
func (i *Inference) join(s int, y tensor.Matrix) (tensor.Matrix, error) {
	t := &i.whole.joined
	if len(i.halo.ids) > 0 {
		t.arena.Reset()
		t.x = t.arena.Alloc(i.device.Type(), i.sources(), y.Cols)
		i.device.Combine(t.x.RowRange(0, y.Rows), 1, y, 0, tensor.Matrix{})
	}
	if err := i.halo.bring(i, s, y, t); err != nil {
		return y, fmt.Errorf("run %s over all vertices: %w", i.now.stages[s].Name, err)
	}
	if len(i.halo.ids) == 0 {
		return y, nil
	}
	return t.x, nil
}

// readWhole reads what parts over all vertices need.
func (i *Inference) readWhole(ctx context.Context, stages int) (err error) {
	w := &i.whole
	i.inFile = false
	if w.ready {
		return nil
	}
	w.lanes[0] = i.work
	w.ids = i.own.vertices(w.ids[:0], 0, i.own.rows)
	places, far := w.ids, (*features.Far)(nil)
	if !i.halo.nodes.alone() {
		if places, far, err = i.readHalo(ctx, stages); err != nil {
			return err
		}
	} else if i.now.model.Hops() > 0 {
		if err := i.sampler.Part(&w.block, 0, i.own.rows); err != nil {
			return err
		}
	}
	w.input = nn.Input{Vertices: w.ids}
	if i.data.Features.Sparse() {
		i.data.Features.Fill(&w.sparse, places, false, far)
		w.input.Sparse, w.ready = &w.sparse.CSR, true
		i.halo.drop()
		return nil
	}
	columns := i.data.Features.Columns()
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

// Close gives back all but the arena that is the first lane's, which is its caller's.
func (i *Inference) Close() {
	for _, a := range []tensor.Arena{i.whole.rows, i.whole.joined.arena} {
		if a != nil {
			a.Close()
		}
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

// readHalo is readWhole's part where there is a halo: it makes the block whose sources are
// the vertices here and then those of the halo, and returns where the features of the
// sources are.
func (i *Inference) readHalo(ctx context.Context, stages int) (places []uint32, far *features.Far, err error) {
	w, h := &i.whole, i.halo
	if i.now.model.Hops() > 0 {
		if err := i.sampler.Sample(ctx, &w.batch, 0, 0, w.ids); err != nil {
			return nil, nil, err
		}
		w.block = w.batch.Blocks[0]
		// Its sources beside the targets stand in the order in which they were found.
		for at, source := range w.block.Indices {
			if int(source) >= i.own.rows {
				w.block.Indices[at] = int32(i.own.rows) + h.rowOf.Find(w.block.Vertices[source])
			}
		}
		w.block.Vertices, w.block.Stamp = nil, tensor.NewStamp()
		if err := i.reserve(stages); err != nil {
			return nil, nil, err
		}
	}
	if !i.hears() || len(h.ids) == 0 {
		return w.ids, nil, nil
	}
	if err := h.features(ctx); err != nil {
		return nil, nil, err
	}
	places = append(append([]uint32(nil), w.ids...), h.places...)
	w.ids = append(w.ids, h.ids...)
	return places, &h.far.Far, nil
}

// reserve makes room for the rows of all sources, of the widest stage that is exchanged.
func (i *Inference) reserve(stages int) (err error) {
	widest := i.widest(stages)
	if len(i.views) > 1 {
		widest = int(i.largest(func(stages int) uint64 { return uint64(i.widest(stages)) }))
	}
	t := &i.whole.joined
	t.device = i.device
	t.arena, err = i.device.NewArena(i.sources() * widest * i.device.Type().Bytes())
	return err
}

// widest is how many columns the widest stage has that is exchanged.
func (i *Inference) widest(stages int) (columns int) {
	for s := range i.now.stages[:stages] {
		if i.exchanged(s, stages) {
			columns = max(columns, i.now.stages[s].Out)
		}
	}
	return columns
}

// Held counts the memory that it keeps between runs, in bytes.
func (i *Inference) Held() (bytes uint64) {
	for _, a := range append([]tensor.Arena{i.whole.rows, i.whole.joined.arena}, i.whole.lanes[1:]...) {
		if a != nil {
			bytes += uint64(a.Bytes())
		}
	}
	return bytes
}
