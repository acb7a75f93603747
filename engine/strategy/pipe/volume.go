package pipe

import "github.com/hopmesh/hopmesh/engine/exchange"

// Sizes are what the bytes of an epoch depend on.
type Sizes struct {
	Stages, Ways, Nodes int
	Vertices            int
	// Mirrors are the pairs of a vertex and another way that an edge of it leads to.
	Mirrors int
	// Layers are those that read rows which were computed: of a model whose first layer
	// reads features, all but that.
	Layers int
	Hidden int // columns of rows between layers
	Number int // bytes of one
	// Tensors is how many rows of each vertex go from stage to stage: 2 where the first
	// representation is seen by all layers.
	Tensors int
	Weights int // of all stages
	// Partials are the numbers that ways send each other because their shards are no whole
	// part of the tree that gradients are added up by: see Task.Partials.
	Partials int
}

// A Volume is what all nodes send each other in an epoch, in bytes of payload, where each
// way of each stage has a node of its own.
type Volume struct {
	Boundary uint64 // between stages: activations and their gradients
	Halo     uint64 // within stages, between ways
	Sum      uint64 // of gradients, within stages
}

// Of is the volume of an epoch whose ways see each other's rows of now.
func (s Sizes) Of() Volume {
	row := uint64(s.Hidden * s.Number)
	return Volume{
		Boundary: 2 * uint64(s.Stages-1) * uint64(s.Tensors) * uint64(s.Vertices) * row,
		Halo:     2 * uint64(s.Layers) * uint64(s.Mirrors) * row,
		Sum:      2*uint64(s.Ways-1)*uint64(s.Weights*s.Number) + uint64(s.Partials*s.Number),
	}
}

// Settled is what all nodes send each other to settle one row, in bytes of payload.
func (s Sizes) Settled() uint64 { return uint64(s.Nodes-s.Ways) * uint64(s.Weights*s.Number) }

// History is what the nodes send each other to make a history, once in a period.
func (s Sizes) History() uint64 {
	row := uint64(s.Hidden * s.Number)
	return uint64(s.Stages-1)*uint64(s.Tensors)*uint64(s.Vertices)*row + uint64(s.Layers)*uint64(s.Mirrors)*row
}

// Total is the sum.
func (v Volume) Total() uint64 { return v.Boundary + v.Halo + v.Sum }

// Partials counts the numbers of partial sums that the nodes of each stage send each other
// beyond one of each node: one has several where its shards are not all those below one knot
// of the tree over all shards.
func (t *Task) Partials(nodes int) (numbers int) {
	for stage := range t.Seats.Stages {
		from, to := columnsOf(t.Model, t.Cuts[stage], t.Cuts[stage+1])
		spans, members := exchange.Spans(t.holders(stage), nodes), t.Seats.Members(stage)
		for member, node := range members {
			first, end := shareOf(to-from, member, len(members))
			numbers += max(0, len(spans[node])-1) * (to - from - (end - first))
		}
	}
	return numbers
}
