//go:build cuda

package device

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	draw "github.com/hopmesh/hopmesh/cuda/sample"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

var _ sample.Holder = (*Device)(nil)

// resident samples blocks in the stream of its sampler. Operations use the blocks where
// they are in the GPU's memory.
type resident struct {
	device  *Device
	sampler *draw.Sampler
	summed  driver.Event // after the last Sum
}

// away is a mini-batch in the GPU's memory.
type away struct {
	resident *resident
	batch    draw.Batch
	held     []held // of its blocks
	outer    tensor.There
}

// held holds the addresses of a block's arrays for operations.
type held struct {
	tensor.There
	entries
	columns
	transposed tensor.Transpose // marks that there is a transpose
}

func drawing(o sample.ResidentOptions) draw.Options {
	return draw.Options{Options: o.Options, Fused: o.Summed}
}

// Footprint implements sample.Holder.
func (d *Device) Footprint(t *sample.Topology, o sample.ResidentOptions, roots int, entries []int) sample.Footprint {
	return draw.Footprint(t, drawing(o), roots, entries)
}

// Hold implements sample.Holder.
func (d *Device) Hold(t *sample.Topology, o sample.ResidentOptions) (sample.Resident, error) {
	if !d.begin() {
		return nil, d.err
	}
	defer d.end()
	s, err := draw.New(d.on, t, drawing(o))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	e, err := d.on.NewEvent(false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, errors.Join(err, s.Close(d.on)))
	}
	r := &resident{device: d, sampler: s, summed: e}
	d.residents = append(d.residents, r)
	return r, nil
}

// Sample implements sample.Resident. It returns when the blocks are complete.
func (r *resident) Sample(b *sample.Batch, epoch, step uint64, roots []uint32) error {
	d := r.device
	b.Blocks = b.Blocks[:0]
	if !d.begin() {
		return d.err
	}
	defer d.end()
	a, _ := b.Away.(*away)
	if a == nil {
		a = &away{resident: r}
		b.Away = a
	}
	if err := r.sampler.Sample(d.on, &a.batch, epoch, step, roots); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	a.give(b, r.sampler.Fused())
	return nil
}

// give sets b's blocks.
func (a *away) give(b *sample.Batch, summed bool) {
	n, first := len(a.batch.Blocks), 0
	if summed {
		first = 1
	}
	if cap(b.Blocks) < n+first {
		b.Blocks = make([]sample.Block, n+first)
	}
	b.Blocks = b.Blocks[:n+first]
	if len(a.held) < n {
		a.held = make([]held, n)
	}
	if summed {
		rows := a.batch.Inputs
		a.outer = tensor.There{Entries: a.batch.Summed}
		b.Blocks[0].CSR = tensor.CSR{Rows: rows, Cols: rows, There: &a.outer}
		b.Blocks[0].Own, b.Blocks[0].Vertices = 0, a.batch.Listed
	}
	for i := range a.batch.Blocks {
		from, h, block := &a.batch.Blocks[i], &a.held[i], &b.Blocks[first+i]
		h.There = tensor.There{Entries: from.Entries, Valued: from.Valued, At: h}
		h.entries = entries{indptr: addressAt(from.Indptr), indices: addressAt(from.Indices), values: addressAt(from.Values)}
		h.columns = columns{indptr: addressAt(from.Columns), rows: addressAt(from.Targets), edges: addressAt(from.Edges)}
		block.CSR = tensor.CSR{Rows: from.Rows, Cols: from.Cols, Transposed: &h.transposed, There: &h.There, Stamp: tensor.NewStamp()}
		block.Own, block.Vertices = 0, a.batch.Listed[:from.Cols]
	}
}

// addressAt returns the address of memory, or 0 if it is empty.
func addressAt(m driver.Memory) address { return address(m.Address()) }

// Sum implements sample.Resident.
func (r *resident) Sum(y tensor.Matrix, b *sample.Batch, x tensor.Matrix, how tensor.Aggregation) {
	d := r.device
	mustCompute(y)
	mustHold("x", x, x.Rows, y.Cols)
	if !d.begin() {
		return
	}
	defer d.end()
	a := b.Away.(*away)
	d.check(r.sampler.Mean(d.on, &a.batch, matrixRows(y), matrixRows(x), how == tensor.Mean))
	if d.err == nil && d.flush() {
		d.check(d.on.Record(r.summed, r.sampler.Stream()))
		d.check(d.on.After(d.stream, r.summed))
	}
}

// matrixRows converts a matrix for the sampler.
func matrixRows(m tensor.Matrix) draw.Rows {
	bytes := 0
	if m.Rows > 0 {
		bytes = ((m.Rows-1)*m.Stride + m.Cols) * m.Type.Bytes()
	}
	return draw.Rows{At: addressOf(m).memory(bytes), Stride: m.Stride, Cols: m.Cols, BF16: m.Type == tensor.BF16}
}

// Close implements sample.Resident. Batches must be closed before.
func (r *resident) Close() {
	d := r.device
	if d.freeing() {
		d.check(r.sampler.Close(d.on))
		d.check(d.on.CloseEvent(r.summed))
		d.end()
	}
	for i, other := range d.residents {
		if other == r {
			d.residents = append(d.residents[:i], d.residents[i+1:]...)
			break
		}
	}
}

// Close implements sample.Away.
func (a *away) Close() {
	d := a.resident.device
	if d.freeing() {
		d.check(d.on.Finish(a.resident.sampler.Stream()))
		d.check(a.batch.Close(d.on))
		d.end()
	}
}
