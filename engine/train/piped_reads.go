package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// reads are the features that a pipeline's first stage reads: those of other nodes are
// brought once, before the first epoch.
type reads struct {
	data   *data
	device tensor.Device

	far    gather.Rows
	at     index // where features.Store finds those that are not here
	rows   int   // that an epoch reads
	places []input
	sets   [1][]uint32

	most   int // of a place: bytes of dense rows
	ids    []uint32
	arenas []tensor.Arena
	spare  tensor.Arena
}

// An input is what a place holds, and of what grain that is.
type input struct {
	grain  int // -1: nothing yet
	sparse features.Rows
	dense  tensor.Matrix
}

var _ pipe.Features = (*reads)(nil)

// plan looks at what a worker reads, which places that takes, and what is not here of it.
func (r *reads) plan(w *pipe.Worker) {
	grains, places := w.Reads()
	r.places, r.rows, r.most = make([]input, places), 0, 0
	var far []uint32
	for _, vertices := range grains {
		r.rows += len(vertices)
		r.most = max(r.most, len(vertices)*r.data.features.Columns()*r.device.Type().Bytes())
		for _, v := range vertices {
			if !r.data.features.Has(v) {
				far = append(far, v)
			}
		}
	}
	slices.Sort(far)
	r.sets[0] = slices.Compact(far)
}

// bring brings what is not here.
func (r *reads) bring(ctx context.Context, t *learner) error {
	if t.shared == nil {
		return nil
	}
	// Nodes that read nothing ask for nothing.
	if err := t.shared.source.Gather(ctx, &r.far, r.sets[:], 0, 0, gather.Options{}, &t.shared.start); err != nil {
		return fmt.Errorf("bring the features that the first stage reads: %w", err)
	}
	rows := make([]int32, len(r.sets[0]))
	for i, at := range r.far.Places[0] {
		rows[i] = int32(at)
	}
	r.at = newIndex(r.sets[0], rows, r.data.topology.Vertices())
	return nil
}

// bytes is what inputs take.
func (r *reads) bytes() uint64 {
	n := r.far.Far.Bytes() + 8*uint64(len(r.sets[0]))
	if r.data.features.Sparse() {
		rows := float64(r.rows)
		if len(r.places) > 0 && r.data.features.Columns() > 0 {
			rows = float64(len(r.places)) * float64(r.most/r.data.features.Columns()/r.device.Type().Bytes())
		}
		return n + uint64(rows*(8+20*r.data.entries))
	}
	return n + uint64(len(r.places)*(r.most+64))
}

// open takes the memory of places.
func (r *reads) open() (err error) {
	if r.spare, err = r.device.NewArena(0); err != nil {
		return err
	}
	for i := range r.places {
		r.places[i].grain = -1
		if r.data.features.Sparse() {
			continue
		}
		a, err := r.device.NewArena(0)
		if err != nil {
			return err
		}
		r.arenas = append(r.arenas, a)
	}
	return nil
}

func (r *reads) close() {
	for _, a := range append(r.arenas, r.spare) {
		if a != nil {
			a.Close()
		}
	}
}

// Input implements pipe.Features. A place that holds a grain's is left as it is.
func (r *reads) Input(at, grain int, vertices []uint32) (nn.Input, error) {
	p, in := &r.places[at], nn.Input{Vertices: vertices}
	if p.grain != grain {
		p.grain = grain
		r.fill(p, at, vertices)
	}
	if r.data.features.Sparse() {
		in.Sparse = &p.sparse.CSR
	} else {
		in.Dense = p.dense
	}
	return in, nil
}

func (r *reads) fill(p *input, at int, vertices []uint32) {
	store := r.data.features
	r.ids = append(r.ids[:0], vertices...)
	for i, v := range r.ids {
		if !store.Has(v) {
			r.ids[i] = uint32(r.at.find(v))
		}
	}
	var far *features.Far
	if len(r.sets[0]) > 0 {
		far = &r.far.Far
	}
	if store.Sparse() {
		store.Fill(&p.sparse, r.ids, true, far)
		return
	}
	r.spare.Reset()
	r.arenas[at].Reset()
	p.dense = r.arenas[at].Alloc(r.device.Type(), len(vertices), store.Columns())
	store.Dense(r.device, r.spare, p.dense, r.ids, far)
}
