package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// A Drawer draws rows for the samplers of other nodes, before a sampler's form turns them
// into blocks. It is not safe for concurrent use; several may share a topology.
type Drawer struct {
	t       *Topology
	fanouts []int
	o       *Options // with fan-outs by relation
	seed    uint64
	form    Form
	steady  bool
	known   *degrees
	picker
	positions []uint32
}

// NewDrawer returns a drawer. It uses the fan-outs, the form and the seed of the options.
func NewDrawer(t *Topology, o Options) *Drawer {
	t = t.formed(o.Form)
	if err := o.checkEach(); err != nil {
		panic(err)
	}
	return &Drawer{t: t, o: &o, fanouts: checked(o.Fanouts), seed: o.Seed, form: o.Form, steady: o.Steady, known: t.degreesOf(o.Form)}
}

var errNoInverses = errors.New("sample: the blocks of this model do not need degrees")

// Inverses sets to to 1/sqrt(degree) of vertices, as many as it has room for. It returns an
// error for vertices whose edges are not here.
func (d *Drawer) Inverses(vertices []uint32, to []float32) error {
	if d.known.inverse == nil {
		return errNoInverses
	}
	for i := range to {
		v := vertices[i]
		if int(v) >= d.t.vertices || !d.t.Near(v) {
			return fmt.Errorf("sample: the edges of vertex %d are not here", v)
		}
		part := d.t.of(v)
		to[i] = unsigned(d.known.inverse[part][v-d.t.parts[part].first])
	}
	return nil
}

// Fanout returns the fan-out of a hop, and false if there is no such hop.
func (d *Drawer) Fanout(hop int) (int, bool) {
	if hop < 0 || hop >= len(d.fanouts) {
		return 0, false
	}
	return d.fanouts[hop], true
}

// Draw sets to to the rows of the first vertices, in order, and returns their number: as
// many as have no more than most entries together, and do not take too long to read. It returns
// an error for vertices whose edges are not here, and if the first row alone is larger than
// most. ctx ends what may take long.
func (d *Drawer) Draw(ctx context.Context, to *Drawn, epoch, step uint64, hop int, vertices []uint32, most int) (int, error) {
	fanout, ok := d.Fanout(hop)
	if !ok {
		return 0, fmt.Errorf("sample: there is no hop %d of %d", hop, len(d.fanouts))
	}
	if fanouts := d.o.eachOf(hop); fanouts != nil {
		return d.drawEach(ctx, to, fanouts, vertices, min(most, math.MaxInt32), d.key(epoch, step, hop))
	}
	return d.DrawBy(fanout, to, epoch, step, hop, vertices, most)
}

func (d *Drawer) key(epoch, step uint64, hop int) keyed.Key {
	return keyOf(keyed.New(d.seed, keyed.Neighbor).With(epoch).With(step), hop, d.steady)
}

// DrawBy is Draw by a fan-out that need not be the hop's, and is for all relations.
func (d *Drawer) DrawBy(fanout int, to *Drawn, epoch, step uint64, hop int, vertices []uint32, most int) (int, error) {
	n, entries, weighted, err := d.degrees(to, fanout, vertices, min(most, math.MaxInt32))
	if err != nil {
		return 0, err
	}
	key := d.key(epoch, step, hop)
	to.Sources = slices.Grow(to.Sources[:0], entries)[:entries]
	weights := to.Weights[:0]
	to.Weights = nil
	if weighted {
		to.Weights = slices.Grow(weights, max(1, entries))[:entries]
	}
	for first := 0; first < n; first += group {
		d.rows(to, first, vertices[first:min(first+group, n)], key)
	}
	return n, nil
}

var errRowTooLarge = errors.New("sample: a row of more entries than fit one answer: use smaller fan-outs, or a replicated topology")

// degrees sets the degrees and bounds of rows, up to most entries.
func (d *Drawer) degrees(to *Drawn, fanout int, vertices []uint32, most int) (n, entries int, weighted bool, err error) {
	to.Degrees = slices.Grow(to.Degrees[:0], len(vertices))
	to.Indptr = append(slices.Grow(to.Indptr[:0], len(vertices)+1), 0)
	for first := 0; first < len(vertices); first += group {
		some := vertices[first:min(first+group, len(vertices))]
		for _, v := range some {
			if int(v) >= d.t.vertices || !d.t.Near(v) {
				return 0, 0, false, fmt.Errorf("sample: the edges of vertex %d are not here", v)
			}
			p := &d.t.parts[d.t.of(v)]
			weighted = weighted || p.weights != nil
			at := v - p.first
			prefetch(unsafe.Pointer(unsafe.SliceData(p.indptr)), &at, 1, 3)
		}
		for _, v := range some {
			degree := int32(d.t.Degree(int(v)))
			kept := int(Kept(degree, fanout))
			if kept > most-entries {
				if n == 0 {
					return 0, 0, false, errRowTooLarge
				}
				return n, entries, weighted, nil
			}
			n++
			entries += kept
			if d.form.SelfLoops && !d.lacksLoop(v) {
				degree |= OwnLoop
			}
			to.Degrees = append(to.Degrees, degree)
			to.Indptr = append(to.Indptr, int64(entries))
		}
	}
	return n, entries, weighted, nil
}

// lacksLoop reports whether v has no self-loop of its own.
func (d *Drawer) lacksLoop(v uint32) bool {
	part := d.t.of(v)
	return d.known.lacks(part, v-d.t.parts[part].first)
}

// rows draws rows whose bounds are set: first the positions of their entries, which are
// prefetched, then the entries.
func (d *Drawer) rows(to *Drawn, first int, vertices []uint32, key keyed.Key) {
	d.positions = d.positions[:0]
	for i, v := range vertices {
		degree, kept := to.Degrees[first+i]&Degree, int(to.Indptr[first+i+1]-to.Indptr[first+i])
		if degree == 0 {
			continue
		}
		p := &d.t.parts[d.t.of(v)]
		from := p.indptr[v-p.first]
		if kept == int(degree) {
			prefetchRun(unsafe.Pointer(&p.indices[from]), degree)
			continue
		}
		at := len(d.positions)
		d.positions = slices.Grow(d.positions, kept)[:at+kept]
		drawn := d.positions[at:]
		d.without(drawn, uint32(degree), key.With(uint64(v)))
		prefetch(unsafe.Pointer(&p.indices[from]), &drawn[0], kept, 2)
	}
	positions := d.positions
	for i, v := range vertices {
		at, end := to.Indptr[first+i], to.Indptr[first+i+1]
		indices, weights := d.t.Row(int(v))
		sources := to.Sources[at:end]
		var values []float32
		if to.Weights != nil {
			values = to.Weights[at:end]
		}
		if len(sources) == len(indices) {
			copy(sources, indices)
			fill(values, weights)
			continue
		}
		for j, p := range positions[:len(sources)] {
			sources[j] = indices[p]
		}
		pick(values, weights, positions)
		positions = positions[len(sources):]
	}
}

// fill sets values, if there are any, to weights, or to 1 if a shard has none.
func fill(values, weights []float32) {
	if weights != nil {
		copy(values, weights)
		return
	}
	for j := range values {
		values[j] = 1
	}
}

// pick is fill for the entries at the given positions.
func pick(values, weights []float32, positions []uint32) {
	if weights == nil {
		fill(values, nil)
		return
	}
	for j := range values {
		values[j] = weights[positions[j]]
	}
}
