package sample

import (
	"errors"
	"fmt"
)

// Confines restricts a topology to a part of the graph. All vertices keep their ids and
// their degrees in the whole graph.
type Confines struct {
	// Rows are the vertices whose in-edges are visible. All others have none.
	Rows Set
	// Sources are the vertices from which edges are visible; nil means all. Self-loops are
	// always visible.
	Sources Set
	// Row returns the in-edges of a vertex in Rows that is not near: their sources,
	// ascending, their weights, nil if all are 1, and the vertex's degree in the whole
	// graph. It may omit those that Sources excludes.
	Row func(v uint32) (sources []int32, weights []float32, degree int)
	// Times returns the factor of a message along a visible edge; nil means 1. Sampled
	// rows then stand for the whole row of the graph, not only for its visible part.
	Times func(target, source uint32) float32
	// Keep moves what is copied of a part, if it is not nil: it returns slices with the
	// same elements.
	Keep Keeper
}

// A Keeper has room for arrays outside of ordinary memory.
type Keeper interface {
	KeepOffsets([]int64) ([]int64, error)
	KeepIDs([]int32) ([]int32, error)
	KeepWeights([]float32) ([]float32, error)
}

// A Set is a set of vertices. Count counts those from first to before end.
type Set interface {
	Has(v uint32) bool
	Count(first, end uint32) int
}

// Confine returns the restricted topology. Unchanged rows are shared; the others are
// copied, and invisible ones take no memory.
func (t *Topology) Confine(c Confines) (*Topology, error) {
	to := &Topology{vertices: t.vertices, near: t.near, shift: t.shift, whole: t.origin(), weighed: c.Times != nil}
	to.relations.from = t.relations.from
	largest := 0
	for i := range t.parts {
		largest = max(largest, int(t.parts[i].end-t.parts[i].first))
	}
	empty := make([]int64, largest+1)
	if c.Keep != nil {
		var err error
		if empty, err = c.Keep.KeepOffsets(empty); err != nil {
			return nil, err
		}
	}
	for i := range t.parts {
		p, err := t.confine(i, &c, empty)
		if err != nil {
			return nil, err
		}
		to.edges += p.indptr[p.end-p.first] - p.indptr[0]
		to.parts = append(to.parts, p)
	}
	return to, nil
}

// origin returns the topology of the whole graph.
func (t *Topology) origin() *Topology {
	if t.whole != nil {
		return t.whole
	}
	return t
}

// confine returns one part: empty rows if none is visible, the part itself if all are, or
// a copy.
func (t *Topology) confine(i int, c *Confines, empty []int64) (part, error) {
	p := t.parts[i]
	seen, near := c.Rows.Count(p.first, p.end), p.far == nil
	rows := int(p.end - p.first)
	switch {
	case seen == 0:
		return part{first: p.first, end: p.end, indptr: empty[:rows+1], edges: p.edges}, nil
	case near && seen == rows && c.Sources == nil && c.Times == nil:
		return p, nil
	}
	to := part{first: p.first, end: p.end, indptr: make([]int64, 1, rows+1), degrees: make([]int32, rows), edges: p.edges}
	if err := t.measure(&p, &to, c); err != nil {
		return to, err
	}
	entries := to.indptr[rows]
	to.indices = make([]int32, entries)
	if c.Times != nil {
		to.times = make([]float32, entries)
	}
	if p.edges != nil {
		to.places = make([]int64, entries)
	}
	at := 0
	for v := p.first; v < p.end; v++ {
		if !c.Rows.Has(v) {
			continue
		}
		sources, weights, _ := t.rowFor(&p, v, c)
		if weights != nil && to.weights == nil {
			to.weights = ones(int(entries))
		}
		for j, u := range sources {
			if !c.sees(v, uint32(u)) {
				continue
			}
			to.indices[at] = u
			if to.places != nil {
				to.places[at] = p.place(p.indptr[v-p.first] + int64(j))
			}
			if weights != nil {
				to.weights[at] = weights[j]
			}
			if to.times != nil {
				to.times[at] = 1
				if uint32(u) != v {
					to.times[at] = c.Times(v, uint32(u))
				}
			}
			at++
		}
	}
	if c.Keep == nil {
		return to, nil
	}
	return to, to.keep(c.Keep)
}

// place returns where the features of an entry are.
func (p *part) place(entry int64) int64 {
	if p.places == nil {
		return entry
	}
	return p.places[entry]
}

// keep moves the arrays of a part.
func (p *part) keep(k Keeper) error {
	errs := make([]error, 6)
	p.indptr, errs[0] = k.KeepOffsets(p.indptr)
	p.indices, errs[1] = k.KeepIDs(p.indices)
	p.degrees, errs[2] = k.KeepIDs(p.degrees)
	if p.weights != nil {
		p.weights, errs[3] = k.KeepWeights(p.weights)
	}
	if p.times != nil {
		p.times, errs[4] = k.KeepWeights(p.times)
	}
	if p.places != nil {
		p.places, errs[5] = k.KeepOffsets(p.places)
	}
	return errors.Join(errs...)
}

// measure sets the row offsets and degrees of a copied part.
func (t *Topology) measure(p, to *part, c *Confines) error {
	entries := int64(0)
	for v := p.first; v < p.end; v++ {
		if c.Rows.Has(v) {
			if p.far != nil && c.Row == nil {
				return fmt.Errorf("sample: the edges of vertex %d are not here", v)
			}
			sources, _, degree := t.rowFor(p, v, c)
			to.degrees[v-p.first] = int32(degree)
			for _, u := range sources {
				if c.sees(v, uint32(u)) {
					entries++
				}
			}
		}
		to.indptr = append(to.indptr, entries)
	}
	return nil
}

// sees reports whether the edge from u to v is visible, given that v's row is.
func (c *Confines) sees(v, u uint32) bool {
	return c.Sources == nil || u == v || c.Sources.Has(u)
}

func (t *Topology) rowFor(p *part, v uint32, c *Confines) ([]int32, []float32, int) {
	if p.far != nil {
		return c.Row(v)
	}
	sources, weights := p.row(v)
	degree := len(sources)
	if p.degrees != nil {
		degree = int(p.degrees[v-p.first])
	}
	return sources, weights, degree
}

func ones(n int) []float32 {
	to := make([]float32, n)
	for i := range to {
		to[i] = 1
	}
	return to
}

// Seen returns the visible in-edges of v and its degree in the whole graph; the degree is
// 0 if v's row is not visible. v must be near.
func (t *Topology) Seen(v uint32) (sources []int32, degree int) {
	p := &t.parts[t.of(v)]
	sources, _ = p.row(v)
	if p.degrees != nil {
		return sources, int(p.degrees[v-p.first])
	}
	return sources, len(sources)
}

// Copied returns the memory in bytes that a restricted topology takes beside its
// original.
func (t *Topology) Copied() (bytes uint64) {
	if t.whole == nil {
		return 0
	}
	largest := 0
	for i := range t.parts {
		p := &t.parts[i]
		if p.degrees != nil {
			bytes += uint64(8*(cap(p.indptr)+len(p.places)) + 4*(len(p.degrees)+len(p.indices)+len(p.weights)+len(p.times)))
		}
		largest = max(largest, int(p.end-p.first))
	}
	return bytes + 8*uint64(largest+1)
}
