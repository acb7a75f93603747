package evaluate

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// readRange returns the features of n rows from first on, all of vertices here or all of the
// halo's.
func (i *Inference) readRange(ctx context.Context, first, n int) (nn.Input, error) {
	if first >= i.own.rows && !i.data.Features.Sparse() {
		x, err := i.readFar(ctx, first-i.own.rows, n)
		return nn.Input{Dense: x}, err
	}
	places, far, err := i.rangePlaces(ctx, first, n)
	if err != nil {
		return nn.Input{}, err
	}
	return i.readPlaces(places, far), nil
}

// readFar returns dense features of the halo. They are brought once a run, some at a time:
// the nodes that have them need room for an answer, too. They are kept for the next time, if
// there is one.
func (i *Inference) readFar(ctx context.Context, first, n int) (x tensor.Matrix, err error) {
	if i.once || i.data.Features.Learnt() {
		return i.bringFar(ctx, first, n)
	}
	if t := i.scratch.kept; t != nil && (t.file != nil) == i.planned.inFile {
		return t.x.RowRange(first, n), nil
	}
	if err := i.dropFar(); err != nil {
		return x, err
	}
	far, err := i.table(i.halo.size(), i.data.Features.Columns())
	if err != nil {
		return x, err
	}
	each := i.farRows(i.planned.rows)
	for at := 0; at < far.x.Rows; at += each {
		i.parts.arena.Reset()
		y, err := i.bringFar(ctx, at, min(each, far.x.Rows-at))
		if err == nil {
			err = far.write(at, y)
		}
		if err != nil {
			return x, errors.Join(err, far.close())
		}
	}
	i.parts.arena.Reset()
	i.scratch.kept, i.scratch.far = far, gather.Rows{}
	return far.x.RowRange(first, n), nil
}

// bringFar brings dense features of the halo into the arena of parts.
func (i *Inference) bringFar(ctx context.Context, first, n int) (x tensor.Matrix, err error) {
	places, far, err := i.rangePlaces(ctx, i.own.rows+first, n)
	if err != nil {
		return x, err
	}
	x = i.parts.arena.Alloc(i.device.Type(), n, i.data.Features.Columns())
	i.fill(x, i.parts.arena, places, far)
	return x, nil
}

// dropFar forgets the features of the halo.
func (i *Inference) dropFar() error {
	t := i.scratch.kept
	i.scratch.kept = nil
	return t.close()
}

// rangePlaces returns where these features are.
func (i *Inference) rangePlaces(ctx context.Context, first, n int) ([]uint32, *features.Far, error) {
	h := i.halo
	if first < i.own.rows {
		i.scratch.ids = i.own.vertices(sized(i.scratch.ids, n)[:0], first, n)
		return i.scratch.ids, nil, nil
	}
	first -= i.own.rows
	if _, ok := i.kept(); !i.data.Features.Sparse() || !ok {
		if err := h.gather(ctx, &i.scratch.far, h.ids[first:first+n]); err != nil {
			return nil, nil, err
		}
		return i.scratch.far.Places[0], &i.scratch.far.Far, nil
	}
	if err := h.features(ctx); err != nil {
		return nil, nil, err
	}
	return h.places[first : first+n], &h.far.Far, nil
}

// read returns the features of some vertices, wherever they are.
func (i *Inference) read(ctx context.Context, vertices []uint32) (nn.Input, error) {
	places, far, err := i.places(ctx, vertices)
	if err != nil {
		return nn.Input{}, err
	}
	return i.readPlaces(places, far), nil
}

// readPlaces returns the features at these places.
func (i *Inference) readPlaces(places []uint32, far *features.Far) (in nn.Input) {
	if i.data.Features.Sparse() {
		i.data.Features.Fill(&i.scratch.sparse, places, false, far)
		in.Sparse = &i.scratch.sparse.CSR
		return in
	}
	in.Dense = i.parts.arena.Alloc(i.device.Type(), len(places), i.data.Features.Columns())
	i.fill(in.Dense, i.parts.arena, places, far)
	return in
}

// places returns where the features of some vertices are. Those of the halo are brought once
// a run and kept or, where they are too many, brought each time.
func (i *Inference) places(ctx context.Context, vertices []uint32) ([]uint32, *features.Far, error) {
	h := i.halo
	if i.now.stages[0].Hops == 0 || h.size() == 0 {
		return vertices, nil, nil
	}
	if _, ok := i.kept(); !ok {
		if err := h.gather(ctx, &i.scratch.far, vertices); err != nil {
			return nil, nil, err
		}
		return i.scratch.far.Places[0], &i.scratch.far.Far, nil
	}
	if err := h.features(ctx); err != nil {
		return nil, nil, err
	}
	near := 0
	i.scratch.rows = i.scratch.rows[:0]
	for _, v := range vertices {
		if row := h.row(v, &near); row >= i.own.rows {
			v = h.places[row-i.own.rows]
		}
		i.scratch.rows = append(i.scratch.rows, v)
	}
	return i.scratch.rows, &h.far.Far, nil
}

// fill sets y to the features at these places. The arena is for what that takes beside.
func (i *Inference) fill(y tensor.Matrix, a tensor.Arena, places []uint32, far *features.Far) {
	if i.host == nil {
		i.data.Features.Dense(i.device, a, y, places, far)
		return
	}
	i.distant.bring(i.device, y, func(x tensor.Matrix, first int) {
		i.data.Features.Dense(i.host, i.window, x, places[first:][:x.Rows], far)
	})
}

// pick sets y to some of the rows between two stages.
func (i *Inference) pick(y, x tensor.Matrix, rows []uint32) {
	i.held[0].X = x
	if i.host == nil || !i.planned.inFile {
		i.device.Gather(y, i.held[:], rows)
		return
	}
	i.distant.bring(i.device, y, func(some tensor.Matrix, first int) {
		i.host.Gather(some, i.held[:], rows[first:][:some.Rows])
	})
}

// rangeOf returns n rows of a table from first on, if there is one.
func (i *Inference) rangeOf(t *table, first, n int) tensor.Matrix {
	if t == nil || t.x.None() {
		return tensor.Matrix{}
	}
	x := t.x.RowRange(first, n)
	if i.host == nil || t.file == nil {
		return x
	}
	y := i.parts.arena.Alloc(x.Type, x.Rows, x.Cols)
	i.device.Write32(y, x.F32())
	return y
}

// distant serves a device that can't see the host's memory: shards, rows of other nodes, and
// files. It gathers windows of their rows on the host and copies each to the device.
type distant struct {
	host   tensor.Device // nil: the device sees them itself
	window tensor.Arena
	held   [1]tensor.Part
}

// windowRows is how many rows are brought over at once.
const windowRows = 4096

func (h *distant) open(d tensor.Device, threads int) (err error) {
	if _, foreign := d.(tensor.Foreign); !foreign {
		return nil
	}
	h.host = cpu.New(threads)
	h.window, err = h.host.NewArena(0)
	return err
}

func (h *distant) close() {
	if h.host == nil {
		return
	}
	if h.window != nil {
		h.window.Close()
	}
	h.host.Close()
	h.host = nil
}

// bring sets y to rows that are gathered on the host, a window from first on each time.
func (h *distant) bring(d tensor.Device, y tensor.Matrix, gather func(x tensor.Matrix, first int)) {
	for first := 0; first < y.Rows; first += windowRows {
		rows := y.RowRange(first, min(windowRows, y.Rows-first))
		h.window.Reset()
		x := h.window.Alloc(y.Type, rows.Rows, rows.Cols)
		gather(x, first)
		d.Write32(rows, x.F32())
	}
}
