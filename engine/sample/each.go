package sample

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// each holds what draws rows relation by relation, in memory that is reused.
type each struct {
	counts []uint32 // of a row's entries of each relation
	ends   []uint32 // of each relation in order
	order  []uint32 // positions of a row's entries, relation by relation
}

// checkEach returns an error unless there is a fan-out for each relation of each hop, all of them
// together as many as the hop's.
func (o *Options) checkEach() error {
	if o.Each == nil {
		return nil
	}
	if len(o.Each) != len(o.Fanouts) {
		return fmt.Errorf("sample: fan-outs by relation of %d hops of %d", len(o.Each), len(o.Fanouts))
	}
	for h, of := range o.Each {
		sum := 0
		for _, k := range of {
			if sum += k; k < 1 {
				return fmt.Errorf("sample: a fan-out of %d of a relation", k)
			}
		}
		if len(of) != o.Form.Relations || sum != o.Fanouts[h] {
			return fmt.Errorf("sample: fan-outs of %d relations of %d, which are %d of %d", len(of), o.Form.Relations, sum, o.Fanouts[h])
		}
	}
	return nil
}

// eachOf returns the fan-outs of a hop by relation; nil: it has one for all.
func (o *Options) eachOf(hop int) []int {
	if o.Each == nil {
		return nil
	}
	return o.Each[hop]
}

// pickEach draws the entries of a row, so many of each relation, and adds their positions to to. It
// reports whether all entries are drawn; no positions are added then.
func (k *picker) pickEach(to []uint32, relations []float32, fanouts []int, key keyed.Key) (drawn []uint32, all bool) {
	if len(relations) <= slices.Min(fanouts) {
		return to, true
	}
	if alike(relations) {
		of, n := int(relations[0]), uint32(len(relations))
		if int(n) <= fanouts[of] {
			return to, true
		}
		from := len(to)
		to = slices.Grow(to, fanouts[of])[:from+fanouts[of]]
		k.without(to[from:], n, key.With(uint64(of)))
		return to, false
	}
	kept, all := k.sort(relations, fanouts)
	if all {
		return to, true
	}
	e := &k.each
	to = slices.Grow(to, kept)
	for r, c := range e.counts {
		of, from := e.order[e.ends[r]-c:e.ends[r]], len(to)
		if int(c) <= fanouts[r] {
			to = append(to, of...)
			continue
		}
		to = to[:from+fanouts[r]]
		k.without(to[from:], c, key.With(uint64(r)))
		for i, p := range to[from:] {
			to[from+i] = of[p]
		}
	}
	return to, false
}

// sortedAtOnce is the most room that a row is sorted in without being counted before.
const sortedAtOnce = 1 << 12

// sort sorts the positions of a row's entries by relation, and returns how many are drawn, and whether
// all are; they are not sorted then. A relation has room for all entries where that is little: so a
// row is read once.
func (k *picker) sort(relations []float32, fanouts []int) (kept int, all bool) {
	e, n, entries := &k.each, len(fanouts), len(relations)
	e.counts, e.ends = slices.Grow(e.counts[:0], n)[:n], slices.Grow(e.ends[:0], n)[:n]
	once := n*entries <= sortedAtOnce
	if clear(e.counts); !once {
		for _, x := range relations {
			e.counts[int(x)]++
		}
	}
	at := 0
	for r := range e.ends {
		if e.ends[r] = uint32(at); once {
			at += entries
		} else {
			at += int(e.counts[r])
		}
	}
	e.order = slices.Grow(e.order[:0], at)[:at]
	for i, x := range relations {
		end := &e.ends[int(x)]
		e.order[*end] = uint32(i)
		*end++
	}
	all = true
	for r := range e.counts {
		if once {
			e.counts[r] = e.ends[r] - uint32(r*entries)
		}
		c := int(e.counts[r])
		all = all && c <= fanouts[r]
		kept += min(c, fanouts[r])
	}
	return kept, all
}

// alike reports whether all relations of a row are one. The rows of vertices with most in-edges often
// are: comparing the row with itself, one entry further, is far faster than counting.
func alike(relations []float32) bool {
	bytes := plain.Bytes(relations)
	return string(bytes[4:]) == string(bytes[:len(bytes)-4])
}

// rowEach is row for fan-outs by relation.
func (c *Counter) rowEach(sources []int32, relations []float32, fanouts []int, key keyed.Key) int {
	drawn, all := c.pickEach(c.positions[:0], relations, fanouts, key)
	c.positions = drawn
	if all {
		c.meet(sources)
		return len(sources)
	}
	for _, at := range drawn {
		if u := uint32(sources[at]); c.met.add(u) {
			c.vertices = append(c.vertices, u)
		}
	}
	return len(drawn)
}

// mostRead is about how many entries are read for one answer: who asks for more rows asks again
// for the rest. However few entries are drawn, a row is read whole, and a question may name one
// of very many entries again and again. Tests lower it.
var mostRead = 64 << 20

// drawEach is DrawBy for fan-outs by relation. The degrees of rows are those of their drawn
// entries, which cannot be known otherwise: no value of an entry depends on them. ctx ends it
// between rows.
func (d *Drawer) drawEach(ctx context.Context, to *Drawn, fanouts []int, vertices []uint32, most int, key keyed.Key) (int, error) {
	to.Degrees = slices.Grow(to.Degrees[:0], len(vertices))
	to.Indptr = append(slices.Grow(to.Indptr[:0], len(vertices)+1), 0)
	to.Sources = to.Sources[:0]
	to.Weights = slices.Grow(to.Weights[:0], 1)[:0] // nil has another meaning than empty
	read := 0
	for i, v := range vertices {
		if i%group == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if int(v) >= d.t.vertices || !d.t.Near(v) {
			return 0, fmt.Errorf("sample: the edges of vertex %d are not here", v)
		}
		sources, relations := d.t.Row(int(v))
		if read += len(sources); read > mostRead && i > 0 {
			break
		}
		drawn, all := d.pickEach(d.positions[:0], relations, fanouts, key.With(uint64(v)))
		d.positions = drawn
		kept := len(drawn)
		if all {
			kept = len(sources)
		}
		if kept > most-len(to.Sources) {
			if len(to.Degrees) == 0 {
				return 0, errRowTooLarge
			}
			break
		}
		if all {
			to.Sources, to.Weights = append(to.Sources, sources...), append(to.Weights, relations...)
		}
		for _, at := range drawn {
			to.Sources, to.Weights = append(to.Sources, sources[at]), append(to.Weights, relations[at])
		}
		to.Degrees, to.Indptr = append(to.Degrees, int32(kept)), append(to.Indptr, int64(len(to.Sources)))
	}
	return len(to.Degrees), nil
}
