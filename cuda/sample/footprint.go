//go:build cuda

package sample

import "github.com/hopmesh/hopmesh/engine/sample"

// Footprint returns the GPU memory that New and Sample use for batches of that many seed
// vertices, with that many entries in their blocks, from the seed vertices outwards.
func Footprint(t *sample.Topology, o Options, roots int, entries []int) sample.Footprint {
	s := &Sampler{o: o, entries: make([]int, o.hops())}
	s.graph.vertices, s.graph.edges = t.Vertices(), t.Edges()
	s.plan(max(1, roots))
	for h := range s.entries {
		s.entries[h] = max(s.entries[h], s.padded(entries[h]))
	}
	var f sample.Footprint
	work := s.workBytes()
	for _, bytes := range append(s.graph.sizes(o.Form), work[:]...) {
		f.Graph += uint64(bytes)
	}
	f.Batch = uint64(s.layout().roots() + 4*s.roots + s.vertexBytes())
	for h := range s.entries {
		for _, bytes := range s.hopBytes(h) {
			f.Batch += uint64(bytes)
		}
	}
	return f
}

// sizes returns the maximum sizes of the topology's arrays in this form.
func (g *resident) sizes(form sample.Form) []int {
	n := g.vertices
	sizes := []int{8*n + 16, 4*int(g.edges) + 4}
	if form.Weighting != sample.Ones {
		sizes = append(sizes, 4*int(g.edges)+4)
	}
	if form.SelfLoops {
		sizes = append(sizes, n/8+16)
	}
	if form.Weighting == sample.Symmetric {
		sizes = append(sizes, 4*n+4)
	}
	return sizes
}
