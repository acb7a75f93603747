package sample

import "github.com/hopmesh/hopmesh/engine/tensor"

// A Holder is a lane of a device that has room for a whole graph and draws of it.
type Holder interface {
	tensor.Foreign
	// Footprint is what Hold and Sample take of the device's memory, for batches of so
	// many roots with so many entries in their blocks, from the roots outwards.
	Footprint(t *Topology, o ResidentOptions, roots int, entries []int) Footprint
	// Hold copies a topology to the device. It is whole, and not used afterwards.
	Hold(t *Topology, o ResidentOptions) (Resident, error)
}

// ResidentOptions say what is drawn on a device. Far is of no use there.
type ResidentOptions struct {
	Options
	// Summed leaves the outermost hop to Sum: its block says how many rows, columns and
	// entries it would have had, its columns being its targets alone, and has no arrays.
	Summed bool
}

// MostSummed is the largest fan-out that Sum draws.
const MostSummed = 32

// A Footprint is memory in bytes: of the graph with what drawing keeps, and of a batch.
type Footprint struct{ Graph, Batch uint64 }

// A Resident is a graph in the memory of a device. It is used by the lane that holds it.
type Resident interface {
	// Sample draws the blocks that a Sampler draws, to the last bit. Their arrays, with
	// those of their transposes, are there alone (tensor.CSR.There); the lists of their
	// vertices are here. What b had before nobody uses any more, but for what the lane
	// was told to begin after.
	Sample(b *Batch, epoch, step uint64, roots []uint32) error
	// Sum sets the rows of y to those that the outermost hop draws of x, which has a row
	// for each vertex of the graph, aggregated as a block of that hop would: with Summed.
	Sum(y tensor.Matrix, b *Batch, x tensor.Matrix, how tensor.Aggregation)
	Close()
}

// Away is the memory of a batch on a device.
type Away interface{ Close() }

// Close gives back what the batch has on a device, before the device is closed.
func (b *Batch) Close() {
	if b.Away != nil {
		b.Away.Close()
	}
	b.Away, b.Blocks = nil, b.Blocks[:0]
}
