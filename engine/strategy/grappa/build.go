package grappa

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/vicinity"
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
	// Topology is the graph's, perhaps partial: local rows are read there. Row returns the
	// others, which have been checked, as far as they have come. With the strict loader,
	// edges from sources outside base and swept shards may be left out, except one from a
	// vertex to itself.
	Topology *sample.Topology
	Row      func(v uint32) (sources []int32, weights []float32, degree int32, ok bool)
	In       *vicinity.Vault // holds what is copied; nil: memory does
}

// A Builder finds what a group sees in a super-epoch. It works in rounds, since which
// rows are needed next is known only when others are there: while there are Missing
// rows, the caller fetches some of them and calls Continue. One goroutine uses it.
type Builder struct {
	o           BuildOptions
	base, swept []span        // of vertices
	inner       *vicinity.Set // vertices of base and swept shards
	rows        *vicinity.Set // whose in-edges are seen
	reach       *vicinity.Set // inner, and known sources of edges
	layer       *vicinity.Set // of rows: those added last
	missing     []uint32
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
	b := &Builder{o: o, inner: vicinity.NewSet(uint32(vertices))}
	first, end := s.Base(o.Group)
	b.base = []span{{o.Firsts[first], o.Firsts[end]}}
	for _, shard := range s.Swept(o.Group, o.Super) {
		b.swept = append(b.swept, span{o.Firsts[shard], o.Firsts[shard+1]})
	}
	for _, p := range slices.Concat(b.base, b.swept) {
		b.inner.AddRange(vicinity.Range{First: p.first, End: p.end})
	}
	b.rows, b.reach, b.layer = b.inner, b.inner, b.inner
	b.lack()
	return b, nil
}

// lack lists the rows of the layer that are not here, and goes on where there are none.
func (b *Builder) lack() {
	for {
		for v := range b.layer.All() {
			if !b.has(v) {
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
	next := vicinity.NewSet(uint32(b.o.Topology.Vertices()))
	for v := range b.layer.All() {
		sources, _, _ := b.row(v)
		for _, u := range sources {
			if !b.reach.Has(uint32(u)) {
				next.Add(uint32(u))
			}
		}
	}
	b.reach = b.reach.Clone() // it may be shared
	b.reach.AddAll(next)
	b.depth++
	if b.depth == hops {
		return false
	}
	b.rows = b.rows.Clone()
	b.rows.AddAll(next)
	b.layer = next
	return true
}

// has reports whether the in-edges of a vertex are here.
func (b *Builder) has(v uint32) bool {
	if b.o.Topology.Near(v) {
		return true
	}
	if b.o.Row == nil {
		return false
	}
	_, _, _, ok := b.o.Row(v)
	return ok
}

// row returns the in-edges of a vertex that are here.
func (b *Builder) row(v uint32) (sources []int32, weights []float32, degree int) {
	if b.o.Topology.Near(v) {
		sources, weights = b.o.Topology.Row(int(v))
		return sources, weights, len(sources)
	}
	sources, weights, d, _ := b.o.Row(v)
	return sources, weights, int(d)
}

// Missing returns the vertices whose in-edges are needed now, ascending.
func (b *Builder) Missing() []uint32 { return b.missing }

// Continue goes on when Row has some more of the missing rows.
func (b *Builder) Continue() {
	if len(b.missing) == 0 {
		return
	}
	b.missing = slices.DeleteFunc(b.missing, b.has)
	if len(b.missing) == 0 && b.advance() {
		b.lack()
	}
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
	if b.o.In != nil {
		confines.Keep = b.o.In
	}
	if b.o.Settings.hop() == 0 {
		confines.Sources = b.inner
		if b.o.Settings.Correction == CorrectMessage {
			confines.Times = b.rarity()
		}
	} else {
		c.has, c.Share = b.keep()
		if c.Share < 1 {
			confines.Sources = c.has
			times := float32(1 / c.Share)
			confines.Times = func(_, u uint32) float32 {
				if b.inner.Has(u) {
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
