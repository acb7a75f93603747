package sample

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Summary is what sampling must know of the vertices of a shard whose edges are
// elsewhere: 1/sqrt(degree) of each, with the self-loop that is added if the form adds
// one, and who has a self-loop of its own. Each is there if the form wants it.
type Summary struct {
	Edges   int64
	Inverse []float32
	Loops   []uint64 // a bit for each vertex of the shard
}

// Summarise makes that of a shard whose edges are here.
func Summarise(s *graph.Shard, form Form) *Summary {
	p := partOf(s)
	m := &Summary{Edges: int64(len(s.Indices))}
	if form.SelfLoops {
		m.Loops = make([]uint64, (s.Vertices+63)/64)
	}
	if form.Weighting == Symmetric {
		m.Inverse = make([]float32, s.Vertices)
	}
	for row := range s.Vertices {
		v := s.First + uint32(row)
		loop := form.SelfLoops && p.loops(v)
		if loop {
			m.Loops[row/64] |= 1 << (row % 64)
		}
		if m.Inverse != nil {
			m.Inverse[row] = p.inverse(v, form.SelfLoops && !loop)
		}
	}
	return m
}

// NewPartial takes the edges of a graph's shards, in any order, of which some have
// none here (Indptr nil): of these, summaries, which are in the order of shards, say
// what sampling must know. It serves samplers of the one form that they were made for.
func NewPartial(shards []*graph.Shard, summaries []*Summary) (*Topology, error) {
	parts := make([]part, len(shards))
	for i, s := range shards {
		parts[i] = partOf(s)
		if s.Indptr != nil || s.Vertices == 0 {
			continue
		}
		var m *Summary
		if i < len(summaries) {
			m = summaries[i]
		}
		switch {
		case m == nil:
			return nil, fmt.Errorf("shard %d has neither edges here nor a summary of them", s.Number)
		case m.Inverse != nil && len(m.Inverse) != s.Vertices, m.Loops != nil && len(m.Loops) != (s.Vertices+63)/64:
			return nil, fmt.Errorf("the summary of shard %d is not one of %d vertices", s.Number, s.Vertices)
		}
		parts[i].far = m
	}
	return newTopology(shards, parts)
}

// check panics where a form is asked for which the summaries are not made for.
func (m *Summary) check(form Form) {
	if form.SelfLoops && m.Loops == nil || form.Weighting == Symmetric && (m.Inverse == nil || (m.Loops != nil) != form.SelfLoops) {
		panic("sample: the summaries of shards are made for another form than the sampler's")
	}
}
