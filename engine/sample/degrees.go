package sample

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/mapped"
)

// degrees are what blocks of a form need of the rows that are here, computed on first use,
// so that samplers share it. They lie part by part; of parts on other nodes there is
// nothing.
type degrees struct {
	once sync.Once
	// inverse is 1/sqrt(degree) of each vertex. Where self-loops are added, the sign bit
	// says that a vertex has one of its own. flat is the memory of all parts in the order
	// of vertices, if none is on another node.
	inverse [][]float32
	flat    []float32
	signed  [][]float32 // inverse, if signs are to be looked at
	marks   []float32   // flat, if the signs of all vertices are
	// loops has a bit for each vertex, set if it has a self-loop of its own; of parts with
	// signs, and of those where no vertex has one, it is nil.
	loops [][]uint64
}

// DegreeBytes returns the memory of what samplers of a form need of the rows here.
func (t *Topology) DegreeBytes(form Form) (bytes uint64) {
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.far != nil:
		case form.Weighting == Symmetric:
			bytes += 4 * uint64(p.end-p.first)
		case form.SelfLoops:
			bytes += uint64(p.end-p.first+7) / 8
		}
	}
	return bytes
}

// none is of forms that need nothing.
var none degrees

// degreesOf returns what samplers of a form need of the topology.
func (t *Topology) degreesOf(form Form) *degrees {
	switch {
	case form.Weighting == Symmetric && form.SelfLoops:
		return t.looped.find(t, true, true)
	case form.Weighting == Symmetric:
		return t.plain.find(t, true, false)
	case form.SelfLoops:
		return t.loops.find(t, false, true)
	}
	return &none
}

// find computes the degrees, with or without 1/sqrt(degree) and self-loops.
func (d *degrees) find(t *Topology, symmetric, loops bool) *degrees {
	d.once.Do(func() {
		if symmetric && t.whole != nil {
			// Degrees are those in the whole graph, and self-loops the visible ones.
			whole := t.whole.degreesOf(Form{SelfLoops: loops, Weighting: Symmetric})
			d.inverse, d.flat = whole.inverse, whole.flat
			if loops {
				d.loops = t.loops.find(t, false, true).loops
			}
			return
		}
		if symmetric {
			d.inverse = make([][]float32, len(t.parts))
			if !t.partial {
				d.flat = inLargePages[float32](t.vertices)
			}
		}
		if loops {
			d.loops, d.signed, d.marks = make([][]uint64, len(t.parts)), d.inverse, d.flat
		}
		for i := range t.parts {
			d.lay(i, &t.parts[i], symmetric, loops)
		}
		t.each(func(i int, first, end uint32) {
			p := &t.parts[i]
			for v := first; v < end; v++ {
				row := v - p.first
				has := loops && p.loops(v)
				switch {
				case symmetric:
					f := p.inverse(v, loops && !has)
					if has {
						f = math.Float32frombits(math.Float32bits(f) | sign)
					}
					d.inverse[i][row] = f
				case has:
					d.loops[i][row/64] |= 1 << (row % 64)
				}
			}
		})
	})
	return d
}

// lay makes room for a part that is here.
func (d *degrees) lay(i int, p *part, symmetric, loops bool) {
	rows := int(p.end - p.first)
	switch {
	case p.far != nil:
	case d.flat != nil:
		d.inverse[i] = d.flat[p.first:p.end:p.end]
	case symmetric:
		d.inverse[i] = make([]float32, rows)
	case loops && p.indptr[rows] > p.indptr[0]:
		d.loops[i] = make([]uint64, (rows+63)/64)
	}
}

// lacks reports whether the vertex in a row of a part, which must be here, has no self-loop
// of its own.
func (d *degrees) lacks(part int, row uint32) bool {
	words := d.loops[part]
	if words == nil {
		return d.signed == nil || math.Float32bits(d.signed[part][row])&sign == 0
	}
	return words[row/64]>>(row%64)&1 == 0
}

// sign is the sign bit of a float32.
const sign = 1 << 31

// unsigned returns the absolute value of f.
func unsigned(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ sign) }

// SelfLoops returns a bit for each vertex, set if the graph has an edge from it to
// itself. All edges must be here.
func (t *Topology) SelfLoops() []uint64 {
	of := make([]uint64, (t.vertices+63)/64)
	for i := range t.parts {
		p := &t.parts[i]
		for v := p.first; v < p.end; v++ {
			if p.loops(v) {
				of[v/64] |= 1 << (v % 64)
			}
		}
	}
	return of
}

// Inverse returns 1/sqrt(degree) of each vertex, 0 if the degree is not positive. With
// selfLoops it counts the added self-loops. All edges must be here.
func (t *Topology) Inverse(selfLoops bool) []float32 {
	d := t.degreesOf(Form{SelfLoops: selfLoops, Weighting: Symmetric})
	of := make([]float32, 0, t.vertices)
	for _, part := range d.inverse {
		for _, f := range part {
			of = append(of, unsigned(f))
		}
	}
	return of
}

// loops reports whether the graph has an edge from v, which must be near, to itself.
func (p *part) loops(v uint32) bool {
	sources, _ := p.row(v)
	_, ok := slices.BinarySearch(sources, int32(v))
	return ok
}

// inverse returns 1/sqrt(degree) of v, with a self-loop if one is added. v must be near.
func (p *part) inverse(v uint32, added bool) float32 {
	sources, weights := p.row(v)
	degree := float64(len(sources))
	if weights != nil {
		degree = 0
		for _, w := range weights {
			degree += float64(w)
		}
	}
	if added {
		degree++
	}
	if degree > 0 {
		return float32(1 / math.Sqrt(degree))
	}
	return 0
}

// grain is the number of vertices that a goroutine takes at a time: a multiple of 64, so
// that no two write to the same word of a part's loops.
const grain = 1 << 14

// each calls do for runs of vertices whose edges are here, on several goroutines.
func (t *Topology) each(do func(part int, first, end uint32)) {
	var mu sync.Mutex
	part, next := 0, uint32(0)
	take := func() (int, uint32, uint32, bool) {
		mu.Lock()
		defer mu.Unlock()
		for ; part < len(t.parts); part++ {
			p := &t.parts[part]
			if first := max(next, p.first); p.far == nil && first < p.end {
				next = min(first+grain, p.end)
				return part, first, next, true
			}
		}
		return 0, 0, 0, false
	}
	var all mapped.Group
	for range min(runtime.GOMAXPROCS(0), t.vertices/grain+1) {
		all.Go(func() {
			for {
				part, first, end, ok := take()
				if !ok {
					return
				}
				do(part, first, end)
			}
		})
	}
	all.Wait()
}
