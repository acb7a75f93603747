package sample

import "github.com/hopmesh/hopmesh/engine/tensor"

// A Holder is a device lane that can hold a whole graph and sample from it.
type Holder interface {
	tensor.Foreign
	// Footprint returns the device memory that Hold and Sample take, for batches of so
	// many roots and so many entries per block, from the roots outwards.
	Footprint(t *Topology, o ResidentOptions, roots int, entries []int) Footprint
	// Hold copies a topology to the device. It must be whole, and is not used afterwards.
	Hold(t *Topology, o ResidentOptions) (Resident, error)
}

// ResidentOptions configures sampling on a device. Far is not supported there.
type ResidentOptions struct {
	Options
	// Summed leaves the outermost hop to Sum: its block has the numbers of rows, columns
	// and entries that it would have had, with its targets alone as columns, but no
	// arrays.
	Summed bool
}

// MostSummed is the largest fan-out that Sum supports.
const MostSummed = 32

// A Footprint is device memory in bytes: of the graph with the sampler's state, and of a
// batch.
type Footprint struct{ Graph, Batch uint64 }

// A Resident is a graph in a device's memory. It is used by the lane that holds it.
type Resident interface {
	// Sample draws exactly the blocks that a Sampler draws. Their arrays and transposes
	// are on the device alone (tensor.CSR.There); the lists of their vertices are here.
	// The batch's previous contents must no longer be in use, except by work that the
	// lane waits for (see After).
	Sample(b *Batch, epoch, step uint64, roots []uint32) error
	// Sum sets the rows of y to the aggregated rows of x that the outermost hop draws,
	// with Summed set. x has a row for each vertex of the graph, and the aggregation is
	// that of the hop's block.
	Sum(y tensor.Matrix, b *Batch, x tensor.Matrix, how tensor.Aggregation)
	Close()
}

// Away is a batch's memory on a device.
type Away interface{ Close() }

// Close frees the batch's memory on a device. It must be called before the device is
// closed.
func (b *Batch) Close() {
	if b.Away != nil {
		b.Away.Close()
	}
	b.Away, b.Blocks = nil, b.Blocks[:0]
}
