package train

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// readHalo makes, for parts over all vertices here, what there is with a halo: the
// block whose sources are the vertices here and then those of the halo, and where the
// features of the sources are.
func (i *inference) readHalo(ctx context.Context, stages int) (places []uint32, far *features.Far, err error) {
	w, h := &i.whole, i.halo
	if i.model.Hops() > 0 {
		if err := i.sampler.Sample(ctx, &w.batch, 0, 0, w.ids); err != nil {
			return nil, nil, err
		}
		w.block = w.batch.Blocks[0]
		// Its sources beside the targets stand in the order in which they were found.
		for at, source := range w.block.Indices {
			if int(source) >= i.own.rows {
				w.block.Indices[at] = int32(i.own.rows) + h.rowOf.find(w.block.Vertices[source])
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
func (i *inference) reserve(stages int) (err error) {
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
func (i *inference) widest(stages int) (columns int) {
	for s := range i.stages[:stages] {
		if i.exchanged(s, stages) {
			columns = max(columns, i.stages[s].Out)
		}
	}
	return columns
}
