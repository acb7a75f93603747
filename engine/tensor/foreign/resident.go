package foreign

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

var _ sample.Holder = (*Device)(nil)

// resident is a graph held by the device, which samples like the CPU.
type resident struct {
	device  *Device
	sampler *sample.Sampler
	summed  bool
	bytes   uint64
	rows    tensor.Arena
}

// away is the device memory of a batch.
type away struct {
	batch sample.Batch
	there []tensor.There
	none  tensor.Transpose
}

// Footprint implements sample.Holder.
func (d *Device) Footprint(t *sample.Topology, _ sample.ResidentOptions, roots int, entries []int) sample.Footprint {
	f := sample.Footprint{Graph: uint64(8*t.Vertices()) + 4*uint64(t.Edges()), Batch: uint64(4 * roots)}
	for _, n := range entries {
		f.Batch += uint64(32 * n)
	}
	return f
}

// Hold implements sample.Holder.
func (d *Device) Hold(t *sample.Topology, o sample.ResidentOptions) (sample.Resident, error) {
	bytes := d.Footprint(t, o, 0, nil).Graph
	if free, _ := d.Free(); bytes > free {
		return nil, fmt.Errorf("%w: a graph of %d bytes", ErrFull, bytes)
	}
	rows, err := d.cpu.NewArena(0)
	if err != nil {
		return nil, err
	}
	d.memory.taken.Add(bytes)
	return &resident{device: d, sampler: sample.New(t, o.Options), summed: o.Summed, bytes: bytes, rows: rows}, nil
}

// Sample implements sample.Resident.
func (r *resident) Sample(b *sample.Batch, epoch, step uint64, roots []uint32) error {
	b.Blocks = b.Blocks[:0]
	if !r.device.works() {
		return r.device.err
	}
	a, _ := b.Away.(*away)
	if a == nil {
		a = &away{}
		b.Away = a
	}
	if err := r.sampler.Sample(context.Background(), &a.batch, epoch, step, roots); err != nil {
		return err
	}
	n := len(a.batch.Blocks)
	if cap(b.Blocks) < n {
		b.Blocks = make([]sample.Block, n)
	}
	if len(a.there) < n {
		a.there = make([]tensor.There, n)
	}
	b.Blocks = b.Blocks[:n]
	for i := range b.Blocks {
		from, to := &a.batch.Blocks[i], &b.Blocks[i]
		a.there[i] = tensor.There{Entries: from.Entries(), Valued: from.Values != nil}
		to.CSR = tensor.CSR{Rows: from.Rows, Cols: from.Cols, There: &a.there[i], Stamp: from.Stamp}
		to.Own, to.Vertices = 0, from.Vertices
		if i == 0 && r.summed {
			to.Cols, to.Vertices = from.Rows, from.Vertices[:from.Rows]
			continue
		}
		from.Transpose()
		a.there[i].At, to.Stamp, to.Transposed = &from.CSR, from.Stamp, &a.none
	}
	return nil
}

// Sum implements sample.Resident.
func (r *resident) Sum(y tensor.Matrix, b *sample.Batch, x tensor.Matrix, how tensor.Aggregation) {
	d, outer := r.device, &b.Away.(*away).batch.Blocks[0]
	if !d.works() {
		return
	}
	r.rows.Reset()
	rows := r.rows.Alloc(tensor.F32, outer.Cols, x.Cols)
	d.parts = append(d.parts[:0], tensor.Part{X: near(x)})
	d.cpu.Gather(rows, d.parts, outer.Vertices)
	d.cpu.Aggregate(near(y), &outer.CSR, tensor.Matrix{}, rows, how, false, nil)
}

// Close implements sample.Resident.
func (r *resident) Close() {
	r.device.memory.taken.Add(-r.bytes)
	r.rows.Close()
}

// Close implements sample.Away.
func (*away) Close() {}
