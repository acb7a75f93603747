package arrange

// Sizes are what the bytes of an epoch depend on.
type Sizes struct {
	Stages, Ways, Nodes int
	Vertices            int
	// Mirrors counts the pairs of a vertex and another way that one of its edges leads to.
	Mirrors int
	// Layers counts those that read computed rows: all but a first one that reads
	// features.
	Layers int
	Hidden int // columns of rows between layers
	Number int // bytes of one
	// Tensors is how many rows of each vertex go from stage to stage: 2 where all layers
	// read the first representation.
	Tensors int
	Weights int // of all stages
	// Partials are the numbers that ways send each other because their shards are not a
	// whole subtree of the summation tree.
	Partials int
}

// A Volume is the payload that all nodes send each other in an epoch, in bytes, where
// each way of each stage has a node of its own.
type Volume struct {
	Boundary uint64 // between stages: activations and their gradients
	Halo     uint64 // within stages, between ways
	Sum      uint64 // of gradients, within stages
}

// Of returns the volume of an epoch with exact halos.
func (s Sizes) Of() Volume {
	row := uint64(s.Hidden * s.Number)
	return Volume{
		Boundary: 2 * uint64(s.Stages-1) * uint64(s.Tensors) * uint64(s.Vertices) * row,
		Halo:     2 * uint64(s.Layers) * uint64(s.Mirrors) * row,
		Sum:      2*uint64(s.Ways-1)*uint64(s.Weights*s.Number) + uint64(s.Partials*s.Number),
	}
}

// Settled returns the payload of sending one row of all weights to all nodes.
func (s Sizes) Settled() uint64 { return uint64(s.Nodes-s.Ways) * uint64(s.Weights*s.Number) }

// History returns the payload of making a history, once in a period.
func (s Sizes) History() uint64 {
	row := uint64(s.Hidden * s.Number)
	return uint64(s.Stages-1)*uint64(s.Tensors)*uint64(s.Vertices)*row + uint64(s.Layers)*uint64(s.Mirrors)*row
}

// Total returns the sum.
func (v Volume) Total() uint64 { return v.Boundary + v.Halo + v.Sum }
