package grappa

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// BuildOptions select the context to build, and its data.
type BuildOptions struct {
	Schedule     *Schedule
	Settings     *Settings
	Group, Super int
	Seed         uint64
	// Most bounds the rows of halo, whatever the settings are; 0: no bound.
	Most   int
	Firsts []uint32 // of each shard, then how many vertices there are
	// Topology is the graph's, perhaps partial: local rows are read there.
	Topology *sample.Topology
}

// A Builder finds what a group sees in a super-epoch. It works in rounds, since which
// rows are needed next is known only when others are there: while there are Missing
// rows, the caller fetches them and calls Take. One goroutine uses it.
type Builder struct {
	o           BuildOptions
	base, swept []span // of vertices
	inner       bits   // vertices of base and swept shards
	rows        bits   // whose in-edges are seen
	reach       bits   // inner, and known sources of edges
	layer       bits   // of rows: those added last
	missing     []uint32
	taken       taken
	depth       int // known hops of halo
}

// A span is the vertices of a run of shards.
type span struct{ first, end uint32 }

func (s span) has(v uint32) bool { return v >= s.first && v < s.end }

// NewBuilder returns a builder with its first missing rows.
func NewBuilder(o BuildOptions) (*Builder, error) {
	s := o.Schedule
	if o.Group < 0 || o.Group >= s.groups || o.Super < 0 {
		return nil, fmt.Errorf("there is no context of group %d of %d in super-epoch %d", o.Group, s.groups, o.Super)
	}
	vertices := o.Topology.Vertices()
	if len(o.Firsts) != s.shards+1 || int(o.Firsts[s.shards]) != vertices || !slices.IsSorted(o.Firsts) {
		return nil, fmt.Errorf("a context of a graph of %d shards and %d vertices is to be built with %d firsts", s.shards, vertices, len(o.Firsts))
	}
	b := &Builder{o: o, inner: newBits(vertices)}
	first, end := s.Base(o.Group)
	b.base = []span{{o.Firsts[first], o.Firsts[end]}}
	for _, shard := range s.Swept(o.Group, o.Super) {
		b.swept = append(b.swept, span{o.Firsts[shard], o.Firsts[shard+1]})
	}
	for _, p := range slices.Concat(b.base, b.swept) {
		b.inner.setAll(p)
	}
	b.rows, b.reach, b.layer = b.inner.clone(), b.inner.clone(), b.inner.clone()
	b.lack()
	return b, nil
}

// lack lists the rows of the layer that are not local, and goes on where there are
// none.
func (b *Builder) lack() {
	for {
		for v := range b.layer.all() {
			if !b.o.Topology.Near(v) {
				b.missing = append(b.missing, v)
			}
		}
		if len(b.missing) > 0 || !b.advance() {
			return
		}
	}
}

// advance finds the sources of the layer's edges, which are the next layer, and reports
// whether their rows are needed.
func (b *Builder) advance() bool {
	hops := b.o.Settings.hop()
	if b.depth == hops {
		return false
	}
	next := newBits(b.o.Topology.Vertices())
	for v := range b.layer.all() {
		sources, _, _ := b.row(v)
		for _, u := range sources {
			if !b.reach.has(uint32(u)) {
				next.set(uint32(u))
			}
		}
	}
	b.reach.add(next)
	b.depth++
	if b.depth == hops {
		return false
	}
	b.rows.add(next)
	b.layer = next
	return true
}

// row returns the in-edges of a vertex that are here.
func (b *Builder) row(v uint32) (sources []int32, weights []float32, degree int) {
	if b.o.Topology.Near(v) {
		sources, weights = b.o.Topology.Row(int(v))
		return sources, weights, len(sources)
	}
	return b.taken.row(v)
}

// Missing returns the vertices whose in-edges are needed now, ascending. With the
// strict loader, edges from sources outside base and swept shards may be left out,
// except one from a vertex to itself.
func (b *Builder) Missing() []uint32 { return b.missing }

// Take takes rows that are missing, and keeps their memory. It checks all of them.
func (b *Builder) Take(r Rows) error {
	if err := r.check(b.o.Topology.Vertices()); err != nil {
		return err
	}
	for _, v := range r.Vertices {
		if _, wanted := slices.BinarySearch(b.missing, v); !wanted {
			return fmt.Errorf("the edges of vertex %d came, and nobody asked for them", v)
		}
	}
	b.taken.add(r)
	left, at := b.missing[:0], 0
	for _, v := range b.missing {
		for at < len(r.Vertices) && r.Vertices[at] < v {
			at++
		}
		if at == len(r.Vertices) || r.Vertices[at] != v {
			left = append(left, v)
		}
	}
	b.missing = left
	if len(left) == 0 && b.advance() {
		b.lack()
	}
	return nil
}

var errIncomplete = errors.New("a context is to be built of which rows are missing")

// Context returns the context, once nothing is missing.
func (b *Builder) Context() (*Context, error) {
	if len(b.missing) > 0 {
		return nil, errIncomplete
	}
	c := &Context{Group: b.o.Group, Super: b.o.Super, Share: 1, base: b.base[0], inner: b.inner, rows: b.rows, has: b.inner}
	c.Swept = b.o.Schedule.Swept(b.o.Group, b.o.Super)
	confines := sample.Confines{Rows: b.rows, Row: b.row}
	if b.o.Settings.hop() == 0 {
		confines.Sources = b.inner
		if b.o.Settings.Correction == CorrectMessage {
			confines.Times = b.rarity()
		}
	} else {
		c.halo, c.Share = b.keep()
		c.has = b.inner.clone()
		for _, v := range c.halo {
			c.has.set(v)
		}
		if c.Share < 1 {
			confines.Sources = c.has
			times := float32(1 / c.Share)
			confines.Times = func(_, u uint32) float32 {
				if b.inner.has(u) {
					return 1
				}
				return times
			}
		}
	}
	c.whole = b.o.Settings.hop() > 0 || confines.Sources == nil
	var err error
	if c.Topology, err = b.o.Topology.Confine(confines); err != nil {
		return nil, fmt.Errorf("build the context of group %d in super-epoch %d: %w", c.Group, c.Super, err)
	}
	return c, nil
}

// rarity returns the weight of messages where others' shards pass through one slot of a
// sweep. It is the inverse of the probability that the source is there, given that the
// target's row is. A shard of others is there in one of the slots; two at once as if
// slots were filled at random.
func (b *Builder) rarity() func(target, source uint32) float32 {
	slots := float32(b.o.Schedule.slots)
	own := b.base[0]
	together := float32(1)
	if n := len(b.swept); n > 1 {
		first, end := b.o.Schedule.Base(b.o.Group)
		together = float32(b.o.Schedule.shards-(end-first)-1) / float32(n-1)
	}
	return func(v, u uint32) float32 {
		switch {
		case own.has(u):
			return 1
		case own.has(v):
			return slots
		}
		for _, s := range b.swept {
			if s.has(v) {
				if s.has(u) {
					return 1
				}
				break
			}
		}
		return together
	}
}
