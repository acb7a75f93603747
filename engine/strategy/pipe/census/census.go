package census

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// A Census is what is counted of a graph. All nodes have the same.
type Census struct {
	Firsts  []uint32 // of each shard, then the number of vertices
	Edges   []int    // of each shard, as it stores them
	Sources []int    // of each shard: rows that its block reads, its own included
	Entries []int    // of each shard: edges, with added self-loops

	counter *counter // of all edges; nil: other nodes have some
	shapes  map[int]*Counts
}

// Counts are what is counted for a shape.
type Counts struct {
	// Halves are the parts in which each shard is computed (see Halve).
	Halves [][2]Size
	// Mirrors counts, by way and by chunk, the vertices of that chunk of another way which
	// have edges into the way. Where several nodes own shards of the way, it is an upper bound,
	// and Least is what one of them has counted alone; nil: Mirrors are as they are.
	Mirrors, Least [][]int
}

// A Size is that of a block: its vertices, the rows that it reads, and its edges.
type Size struct{ Vertices, Sources, Entries int }

// New counts for blocks of a form, where all edges are here.
func New(firsts []uint32, t *sample.Topology, form sample.Form) *Census {
	shards := len(firsts) - 1
	c := &Census{Firsts: firsts, Edges: make([]int, shards), counter: newCounter(t, form)}
	all := make([]int, shards)
	for shard := range shards {
		all[shard] = shard
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			c.Edges[shard] += t.Degree(int(v))
		}
	}
	c.Sources, c.Entries = c.counter.wholes(firsts, all)
	return c
}

// Vertices returns the number of vertices of a shard.
func (c *Census) Vertices(shard int) int { return int(c.Firsts[shard+1] - c.Firsts[shard]) }

// Of returns what is counted for a shape, which Share must have been given unless all edges
// are here.
func (c *Census) Of(s *arrange.Shape) *Counts {
	if of := c.shapes[s.Ways()]; of != nil {
		return of
	}
	var of *Counts
	if s.Ways() == 1 {
		of = c.alone(s)
	} else {
		all := make([]int, len(c.Sources))
		for shard := range all {
			all[shard] = shard
		}
		of = c.counter.of(s, all)
	}
	c.keep(s, of)
	return of
}

// alone returns what a shape of one way has: it reads no other way's rows.
func (c *Census) alone(s *arrange.Shape) *Counts {
	of := newCounts(s)
	for shard := range of.Halves {
		of.Halves[shard][0] = Size{c.Vertices(shard), c.Sources[shard], c.Entries[shard]}
	}
	return of
}

// newCounts returns zeros.
func newCounts(s *arrange.Shape) *Counts {
	c := &Counts{Halves: make([][2]Size, len(s.Firsts)-1), Mirrors: make([][]int, s.Ways())}
	for way := range c.Mirrors {
		c.Mirrors[way] = make([]int, s.Chunks())
	}
	return c
}

func (c *Census) keep(s *arrange.Shape, of *Counts) {
	if c.shapes == nil {
		c.shapes = map[int]*Counts{}
	}
	c.shapes[s.Ways()] = of
}

// Mirrors returns the mirrors of a shape, counted.
func (c *Census) Mirrors(s *arrange.Shape) *arrange.Mirrors {
	return arrange.CountedMirrors(s, c.Of(s).Mirrors)
}

// LeastMirrors returns those that a shape has in any case.
func (c *Census) LeastMirrors(s *arrange.Shape) *arrange.Mirrors {
	of := c.Of(s)
	if of.Least == nil {
		return arrange.CountedMirrors(s, of.Mirrors)
	}
	return arrange.CountedMirrors(s, of.Least)
}

// Halve divides the vertices of a shard of a way, at a position, into those that read no
// current rows of other ways and those that do. If the former are few, all are together.
// The edges of the shard must be here.
func Halve(t *sample.Topology, s *arrange.Shape, way, position, shard int) (of [2][]uint32) {
	together := s.Together(position)
	first, end, _, _ := s.Of(way)
	for v := s.Firsts[shard]; v < s.Firsts[shard+1]; v++ {
		half := 0
		sources, _ := t.Row(int(v))
		for _, u := range sources {
			if (uint32(u) < first || uint32(u) >= end) && together(uint32(u)) {
				half = 1
				break
			}
		}
		of[half] = append(of[half], v)
	}
	if n := len(of[0]); n < worthwhile(n+len(of[1])) {
		of = [2][]uint32{1: slices.Concat(of[0], of[1])}
	}
	return of
}

// worthwhile returns how many vertices of a shard must wait for nothing to be a part of
// their own. Two parts cost more than one, since they share sources.
func worthwhile(vertices int) int {
	const share = 8
	return vertices / share
}

// A counter counts shards whose edges are here.
type counter struct {
	t     *sample.Topology
	loops bool // self-loops are added
	set   *Set
}

func newCounter(t *sample.Topology, form sample.Form) *counter {
	return &counter{t: t, loops: form.SelfLoops, set: NewSet(t.Vertices())}
}

// wholes counts some shards, each as one block: nothing of the others.
func (k *counter) wholes(firsts []uint32, shards []int) (sources, entries []int) {
	sources, entries = make([]int, len(firsts)-1), make([]int, len(firsts)-1)
	var vertices []uint32
	for _, shard := range shards {
		vertices = vertices[:0]
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			vertices = append(vertices, v)
		}
		of := k.around(vertices)
		sources[shard], entries[shard] = of.Sources, of.Entries
	}
	return sources, entries
}

// around returns the size of the block of some vertices: the rows that they read are with
// their own, and the edges with self-loops where they are added.
func (k *counter) around(vertices []uint32) Size {
	k.set.Empty()
	of := Size{Vertices: len(vertices)}
	for _, v := range vertices {
		k.set.Add(v)
		row, _ := k.t.Row(int(v))
		of.Entries += len(row)
		loop := false
		for _, u := range row {
			k.set.Add(uint32(u))
			loop = loop || uint32(u) == v
		}
		if k.loops && !loop {
			of.Entries++
		}
	}
	of.Sources = k.set.Count()
	return of
}

// of counts some shards, ascending, for a shape: nothing of the others.
func (k *counter) of(s *arrange.Shape, shards []int) *Counts {
	c := newCounts(s)
	for i := 0; i < len(shards); {
		way, from := s.WayOf(shards[i]), i
		for i < len(shards) && s.WayOf(shards[i]) == way {
			shard := shards[i]
			for half, vertices := range Halve(k.t, s, way, s.Position(shard), shard) {
				if len(vertices) > 0 {
					c.Halves[shard][half] = k.around(vertices)
				}
			}
			i++
		}
		k.mirrors(s, way, shards[from:i], c.Mirrors[way])
	}
	return c
}

// mirrors counts the vertices of each chunk of other ways with edges into some shards of a
// way.
func (k *counter) mirrors(s *arrange.Shape, way int, shards, to []int) {
	k.set.Empty()
	first, end, _, _ := s.Of(way)
	for _, shard := range shards {
		for v := s.Firsts[shard]; v < s.Firsts[shard+1]; v++ {
			sources, _ := k.t.Row(int(v))
			for _, u := range sources {
				if uint32(u) < first || uint32(u) >= end {
					k.set.Add(uint32(u))
				}
			}
		}
	}
	chunk := 0
	for _, v := range k.set.All(nil) {
		for _, end := s.Chunk(chunk); v >= end; _, end = s.Chunk(chunk) {
			chunk++
		}
		to[chunk]++
	}
}
