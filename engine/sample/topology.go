package sample

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Topology is the in-edges of all vertices, in place in the mapped shards, or of the
// local ones (NewPartial). It is valid as long as the shards. It is safe for concurrent
// use.
type Topology struct {
	vertices int
	edges    int64
	partial  bool // some parts are on other nodes
	parts    []part
	// near[v>>shift] is the part of the first vertex with these high bits; v is in that
	// part or one of the next.
	near  []uint16
	shift uint

	// What blocks need of all rows: self-loops, degrees, and both.
	loops, plain, looped degrees

	whole     *Topology // the topology that Confine restricted; nil if not restricted
	weighed   bool      // parts have times
	relations           // of graphs that have some
	inverses  Inverses  // of samplers of this topology; nil: their own
}

// A part is the rows of one shard.
type part struct {
	first, end uint32
	indptr     []int64
	indices    []int32
	weights    []float32
	edges      *graph.EdgeRows // features; nil: they have none
	far        *Summary        // set if the rows are on another node

	// Of restricted rows:
	degrees []int32   // in the whole graph; nil: the number of entries
	times   []float32 // factor of each entry's message; nil: 1
	places  []int64   // of entries among edges, where these have features; nil: their own
}

func partOf(s *graph.Shard) part {
	return part{first: s.First, end: s.First + uint32(s.Vertices), indptr: s.Indptr, indices: s.Indices, weights: s.Weights, edges: edgeRowsOf(s)}
}

// nearPerPart is the minimum average number of table entries per part, small enough for
// the L1 cache.
const nearPerPart = 4

// NewTopology takes all of a graph's shards, in any order.
func NewTopology(shards []*graph.Shard) (*Topology, error) { return NewPartial(shards, nil) }

// newTopology sorts the parts of shards, and returns an error unless they form a graph.
func newTopology(shards []*graph.Shard, parts []part) (*Topology, error) {
	if len(shards) == 0 {
		return nil, errors.New("there are no shards to take the edges from")
	}
	order := make([]int, len(shards))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return int(shards[a].First) - int(shards[b].First) + shards[a].Number - shards[b].Number
	})
	t := &Topology{}
	total := shards[order[0]].Total
	end := uint32(0)
	for _, i := range order {
		s := shards[i]
		switch {
		case s.Total != total:
			return nil, fmt.Errorf("shard %d is of a graph of %d vertices and not of %d: these shards are of different datasets", s.Number, s.Total, total)
		case s.Vertices == 0:
			continue
		case s.First < end:
			return nil, fmt.Errorf("shard %d begins at vertex %d, which another shard holds already", s.Number, s.First)
		case s.First > end:
			return nil, missing(end, s.First)
		}
		end = s.First + uint32(s.Vertices)
		t.parts = append(t.parts, parts[i])
		if far := parts[i].far; far != nil {
			t.partial = true
			t.edges += far.Edges
		}
		t.edges += int64(len(s.Indices))
	}
	if end != total {
		return nil, missing(end, total)
	}
	t.vertices = int(total)
	t.relate(shards, order)
	t.index()
	return t, nil
}

func missing(first, end uint32) error {
	return fmt.Errorf("no shard holds the edges of the vertices %d to %d: all shards of the dataset are needed", first, end-1)
}

// index builds the table that finds parts.
func (t *Topology) index() {
	for t.vertices>>t.shift > nearPerPart*max(1, len(t.parts)) {
		t.shift++
	}
	t.near = make([]uint16, t.vertices>>t.shift+1)
	p := 0
	for i := range t.near {
		for p+1 < len(t.parts) && int(t.parts[p].end) <= i<<t.shift {
			p++
		}
		t.near[i] = uint16(p)
	}
}

// of returns the number of the part that holds v.
func (t *Topology) of(v uint32) int {
	p := int(t.near[v>>t.shift])
	for v >= t.parts[p].end {
		p++
	}
	return p
}

// Know gives the topology the degrees of vertices whose edges are on other nodes, in place
// of what samplers have been given. It must be called before they use it.
func (t *Topology) Know(inverses Inverses) { t.inverses = inverses }

// Vertices returns the number of vertices of the graph.
func (t *Topology) Vertices() int { return t.vertices }

// Edges returns the number of edges of the graph.
func (t *Topology) Edges() int64 { return t.edges }

// Held returns the topology of the shards that hold reports of their first vertices, with
// nothing of the others: it serves drawers.
func (t *Topology) Held(hold func(first uint32) bool) *Topology {
	h := &Topology{vertices: t.vertices, edges: t.edges, near: t.near, shift: t.shift, parts: slices.Clone(t.parts)}
	h.relations.of, h.relations.from = t.relations.of, t.relations.from
	for i := range h.parts {
		if p := &h.parts[i]; !hold(p.first) {
			*p, h.partial = part{first: p.first, end: p.end, far: &Summary{}}, true
		}
	}
	return h
}

// Near reports whether the in-edges of v are here.
func (t *Topology) Near(v uint32) bool { return !t.partial || t.parts[t.of(v)].far == nil }

// Degree returns the number of in-edges of v, which must be near.
func (t *Topology) Degree(v int) int {
	p := &t.parts[t.of(uint32(v))]
	row := uint32(v) - p.first
	return int(p.indptr[row+1] - p.indptr[row])
}

// Row returns the in-edges of v, which must be near: their sources, ascending, and their
// weights, nil if all are 1. The slices lie in the shard and must not be modified.
func (t *Topology) Row(v int) (sources []int32, weights []float32) {
	p := &t.parts[t.of(uint32(v))]
	return p.row(uint32(v))
}

func (p *part) row(v uint32) (sources []int32, weights []float32) {
	from, to := p.indptr[v-p.first], p.indptr[v-p.first+1]
	if p.weights != nil {
		weights = p.weights[from:to:to]
	}
	return p.indices[from:to:to], weights
}
