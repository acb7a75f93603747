package evaluate

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// whole is what parts over all vertices read, and where their results lie. It stays from one
// use to the next.
type whole struct {
	ready  bool
	block  *sample.Block
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
		free := freeLane(inX, inCarry)
		block := w.block
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
	if i.halo.size() > 0 {
		t.arena.Reset()
		t.x = t.arena.Alloc(i.device.Type(), i.sources(), y.Cols)
		i.device.Combine(t.x.RowRange(0, y.Rows), 1, y, 0, tensor.Matrix{})
	}
	if err := i.halo.bring(i, s, y, t); err != nil {
		return y, fmt.Errorf("run %s over all vertices: %w", i.now.stages[s].Name, err)
	}
	if i.halo.size() == 0 {
		return y, nil
	}
	return t.x, nil
}

// readWhole reads what parts over all vertices need.
func (i *Inference) readWhole(ctx context.Context, stages int) (err error) {
	w := &i.whole
	if w.lanes[0], err = i.room(i.planned.arena); err != nil || w.ready && !i.data.Features.Learnt() {
		return err
	} else if w.ready {
		return i.readDense(ctx) // they have changed
	}
	if err := i.dropFar(); err != nil {
		return err
	}
	if i.now.model.Hops() > 0 {
		entries := i.own.edges
		if i.now.model.Form().SelfLoops {
			entries += i.own.rows
		}
		if w.block, err = i.weaver.weave(0, i.own.rows, entries, i.folder.dir); err != nil {
			return err
		}
		if err := i.reserve(stages); err != nil {
			return err
		}
	}
	if i.data.Features.Sparse() {
		err = i.readSparse(ctx)
	} else {
		err = i.readDense(ctx)
	}
	w.ready = err == nil
	return err
}

// inputRows is how many vertices' features are read.
func (i *Inference) inputRows() int {
	if i.hears() {
		return i.sources()
	}
	return i.own.rows
}

// readDense reads all features, some at a time.
func (i *Inference) readDense(ctx context.Context) (err error) {
	w, rows := &i.whole, i.inputRows()
	columns := i.data.Features.Columns()
	if w.rows == nil {
		if w.rows, err = i.device.NewArena(rows * columns * i.device.Type().Bytes()); err != nil {
			return err
		}
	}
	w.rows.Reset()
	w.input.Dense = w.rows.Alloc(i.device.Type(), rows, columns)
	const atOnce = mostChunks * chunkRows
	for first := 0; first < rows; {
		n := min(atOnce, rows-first)
		if first < i.own.rows {
			n = min(n, i.own.rows-first)
		} else {
			n = i.farRows(n)
		}
		places, far, err := i.rangePlaces(ctx, first, n)
		if err != nil {
			return err
		}
		w.lanes[0].Reset()
		i.fill(w.input.Dense.RowRange(first, n), w.lanes[0], places, far)
		first += n
	}
	i.scratch.far = gather.Rows{}
	return nil
}

// readSparse reads all features at once.
func (i *Inference) readSparse(ctx context.Context) error {
	places, far := i.own.vertices(nil, 0, i.own.rows), (*features.Far)(nil)
	if i.inputRows() > i.own.rows {
		if err := i.halo.features(ctx); err != nil {
			return err
		}
		places, far = append(places, i.halo.places...), &i.halo.far.Far
	}
	w := &i.whole
	i.data.Features.Fill(&w.sparse, places, false, far)
	w.input.Sparse = &w.sparse.CSR
	i.halo.drop()
	return nil
}

// Close gives back all but the arena that is its caller's.
func (i *Inference) Close() {
	i.forget()
	i.halo.close()
	i.distant.close()
	if i.weaver != nil {
		_ = i.weaver.drop() // nobody reads it
	}
}

// forget gives back the memory that it keeps between runs.
func (i *Inference) forget() {
	for _, a := range i.arenas() {
		a.Close()
	}
	_ = i.dropFar() // nobody reads it
	i.whole, i.beside = whole{}, nil
}

// arenas lists its own.
func (i *Inference) arenas() (all []tensor.Arena) {
	for _, a := range append([]tensor.Arena{i.whole.rows, i.whole.joined.arena, i.beside}, i.whole.lanes[1:]...) {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// reserve makes room for the rows of all sources, of the widest stage that is exchanged.
func (i *Inference) reserve(stages int) (err error) {
	if i.halo.nodes.alone() {
		return nil
	}
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

// wholeBytes is what parts over all vertices take.
func (i *Inference) wholeBytes(stages int) uint64 { return i.beyond(i.inWhole(stages)) }

// Held counts the memory that it keeps between runs, in bytes.
func (i *Inference) Held() (bytes uint64) {
	for _, a := range i.arenas() {
		bytes += uint64(a.Bytes())
	}
	return bytes
}

// lanesOf returns what each lane of a run over all vertices takes, as runWhole uses them.
func (i *Inference) lanesOf(stages int) (lanes [3]uint64) {
	inX, inCarry := -1, -1
	for s, stage := range i.now.stages[:stages] {
		free := freeLane(inX, inCarry)
		lanes[free] = max(lanes[free], i.wholeStage(s))
		if stage.CarryOut == 0 || i.now.model.Spec().Model != "gcnii" || s == 0 {
			inCarry = free
		}
		inX = free
	}
	return lanes
}

// freeLane returns a lane that holds nothing.
func freeLane(inX, inCarry int) (free int) {
	for free == inX || free == inCarry {
		free++
	}
	return free
}

// wholeStage is what a stage takes of an arena over all vertices.
func (i *Inference) wholeStage(s int) uint64 {
	targets, edges := uint64(i.own.rows), uint64(i.own.edges)
	const ends = 1 << 12 // of matrices, which begin at whole lines
	return i.now.costOf[s].bytes(uint64(i.sources()), targets, edges+targets) + ends
}
