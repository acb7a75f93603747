package pipe

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// A Census counts what time and memory depend on in a graph. All nodes find the same, since
// each has all edges.
type Census struct {
	Firsts   []uint32 // of each shard, then the number of vertices
	Sources  []int    // of each shard: rows that its block reads, its own included
	Entries  []int    // of each shard: edges, with added self-loops
	topology *sample.Topology
	marks    []uint64 // a bit for each vertex
}

// NewCensus counts for blocks of a form.
func NewCensus(firsts []uint32, t *sample.Topology, form sample.Form) *Census {
	shards := len(firsts) - 1
	c := &Census{Firsts: firsts, Sources: make([]int, shards), Entries: make([]int, shards), topology: t}
	var vertices []uint32
	for shard := range shards {
		vertices = vertices[:0]
		for v := firsts[shard]; v < firsts[shard+1]; v++ {
			vertices = append(vertices, v)
		}
		c.Sources[shard], c.Entries[shard] = c.around(vertices, form.SelfLoops)
	}
	return c
}

// vertices returns the number of vertices of a shard.
func (c *Census) vertices(shard int) int { return int(c.Firsts[shard+1] - c.Firsts[shard]) }

// partsOf counts the parts in which newWay computes the shards of each way, so that the
// memory of any node can be forecast.
func (f *Facts) partsOf(shape *arrange.Shape) [][]part {
	if all, ok := f.parts[shape.Ways()]; ok {
		return all
	}
	all := make([][]part, shape.Ways())
	for number := range all {
		if shape.Ways() == 1 { // it reads no other way's rows
			for p := range shape.Positions() {
				first, end := shape.Shards(number, p)
				for shard := first; shard < end; shard++ {
					if n := f.Census.vertices(shard); n > 0 {
						all[number] = append(all[number], part{position: p, shard: shard, vertices: n, sources: f.Census.Sources[shard], entries: f.Census.Entries[shard]})
					}
				}
			}
			continue
		}
		all[number] = f.halves(shape, number)
	}
	if f.parts == nil {
		f.parts = map[int][][]part{}
	}
	f.parts[shape.Ways()] = all
	return all
}

// halves counts the parts of a way that shares its stage.
func (f *Facts) halves(shape *arrange.Shape, number int) (all []part) {
	w := &way{number: number}
	w.first, w.end, _, _ = shape.Of(number)
	w.places = make([]int32, w.own())
	halves := w.halve(&Task{Shape: shape, Topology: f.Census.topology})
	for p := range shape.Positions() {
		first, end := shape.Shards(number, p)
		for half := range 2 {
			for shard := first; shard < end; shard++ {
				vertices := halves[shard][half]
				if len(vertices) == 0 {
					continue
				}
				of := part{position: p, shard: shard, inner: half == 0, split: len(halves[shard][1-half]) > 0, vertices: len(vertices)}
				of.sources, of.entries = f.Census.around(vertices, f.Model.Form().SelfLoops)
				all = append(all, of)
			}
		}
	}
	return all
}

// around counts the rows that some vertices read, their own included, and the edges, with
// self-loops where they are added.
func (c *Census) around(vertices []uint32, loops bool) (sources, entries int) {
	if c.marks == nil {
		c.marks = make([]uint64, (c.topology.Vertices()+63)/64)
	}
	clear(c.marks)
	for _, v := range vertices {
		c.marks[v/64] |= 1 << (v % 64)
		row, _ := c.topology.Row(int(v))
		entries += len(row)
		loop := false
		for _, u := range row {
			c.marks[u/64] |= 1 << (u % 64)
			loop = loop || uint32(u) == v
		}
		if loops && !loop {
			entries++
		}
	}
	for _, m := range c.marks {
		sources += bits.OnesCount64(m)
	}
	return sources, entries
}
