package sample

import "math"

// RMAT makes the graph that bounds are for.
var RMAT = rmat

// newSampler is New with a slot for each vertex of the graph from the beginning, or never.
func newSampler(t *Topology, o Options, dense bool) *Sampler {
	s := New(t, o)
	s.seen = newSeen(math.MaxInt)
	if dense {
		s.seen = newSeen(t.vertices)
		s.seen.resize(t.vertices)
	}
	return s
}
