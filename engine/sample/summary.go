package sample

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Summary describes for sampling a shard whose edges are on another node:
// 1/sqrt(degree) of each vertex, including the self-loop that the form adds, and which
// vertices have a self-loop of their own. Each is present if the form needs it.
type Summary struct {
	Edges   int64
	Inverse []float32
	Loops   []uint64 // a bit for each vertex of the shard
}

// Summarise returns the summary of a shard whose edges are here.
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

// NewPartial takes a graph's shards, in any order, of which some have no edges here
// (Indptr is nil). For these, summaries, in the order of shards, hold what sampling must
// know. It serves only samplers of the form that the summaries were made for.
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

// check panics if the summaries were not made for this form.
func (m *Summary) check(form Form) {
	if form.SelfLoops && m.Loops == nil || form.Weighting == Symmetric && (m.Inverse == nil || (m.Loops != nil) != form.SelfLoops) {
		panic("sample: the summaries of shards are made for another form than the sampler's")
	}
}
