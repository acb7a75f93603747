package sample

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Without returns a copy of the topology, all of whose edges must be here, in which edges are
// left out as if the graph never had them: degrees, weights and self-loops are those of the rest.
// Parts that lose nothing are shared. hidden is given an edge's relation, 0 if edges have none.
func (t *Topology) Without(ctx context.Context, hidden func(target, source uint32, relation int) bool) (*Topology, error) {
	to := &Topology{vertices: t.vertices, near: t.near, shift: t.shift}
	to.relations.from = t.relations.from
	for i := range t.parts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := &t.parts[i]
		if p.far != nil || p.times != nil || p.degrees != nil {
			return nil, fmt.Errorf("sample: the edges of the vertices %d to %d are not all here", p.first, p.end-1)
		}
		relations := []float32(nil)
		if t.Relates() {
			relations = t.relations.of[i]
		}
		of, left := p.without(relations, hidden)
		to.edges += int64(len(of.indices))
		to.parts = append(to.parts, of)
		if t.Relates() {
			to.relations.of = append(to.relations.of, left)
		}
	}
	return to, nil
}

// without returns a part without hidden edges, and what is left of its relations, which may be nil.
func (p *part) without(relations []float32, hidden func(target, source uint32, relation int) bool) (part, []float32) {
	rows := int(p.end - p.first)
	hides := func(target uint32, at int64) bool {
		relation := 0
		if relations != nil {
			relation = int(relations[at])
		}
		return hidden(target, uint32(p.indices[at]), relation)
	}
	to := part{first: p.first, end: p.end, indptr: make([]int64, 1, rows+1), edges: p.edges}
	kept := int64(0)
	for v := p.first; v < p.end; v++ {
		for at := p.indptr[v-p.first]; at < p.indptr[v-p.first+1]; at++ {
			if !hides(v, at) {
				kept++
			}
		}
		to.indptr = append(to.indptr, kept)
	}
	if kept == p.indptr[rows]-p.indptr[0] {
		return *p, relations
	}
	to.indices = make([]int32, 0, kept)
	if p.weights != nil {
		to.weights = make([]float32, 0, kept)
	}
	if p.edges != nil {
		to.places = make([]int64, 0, kept)
	}
	var left []float32
	if relations != nil {
		left = make([]float32, 0, kept)
	}
	for v := p.first; v < p.end; v++ {
		for at := p.indptr[v-p.first]; at < p.indptr[v-p.first+1]; at++ {
			if hides(v, at) {
				continue
			}
			to.indices = append(to.indices, p.indices[at])
			if p.weights != nil {
				to.weights = append(to.weights, p.weights[at])
			}
			if p.edges != nil {
				to.places = append(to.places, p.place(at))
			}
			if relations != nil {
				left = append(left, relations[at])
			}
		}
	}
	return to, left
}

// Bytes returns the memory of a copy that Without has made of another topology.
func (t *Topology) Bytes(of *Topology) (bytes uint64) {
	for i := range t.parts {
		p, q := &t.parts[i], &of.parts[i]
		if len(p.indices) != len(q.indices) {
			bytes += 8*uint64(cap(p.indptr)+cap(p.places)) + 4*uint64(cap(p.indices)+cap(p.weights))
			if t.Relates() {
				bytes += 4 * uint64(cap(t.relations.of[i]))
			}
		}
	}
	return bytes
}

// A Pruner takes entries out of the blocks of a batch as they are drawn.
type Pruner interface {
	// Prune is given a block before anything is made of it. related means that the values of
	// its entries are their relations.
	Prune(b *Block, related bool)
}

// Remove takes entries out of a sampled block that has not been transposed. remove is asked of
// target and source by their rows, and of an entry by its place. Sources stay, even if nothing is
// left that comes from them.
func (b *Block) Remove(remove func(target, source, entry int) bool) {
	kept, at := 0, b.indptr[0]
	rows, columns := b.along.Rows, 0
	if len(b.indices) > 0 {
		columns = len(rows) / len(b.indices)
	}
	for target := range b.Rows {
		end := b.indptr[target+1]
		for ; at < end; at++ {
			if remove(target, int(b.Indices[at]), int(at)) {
				continue
			}
			b.indices[kept] = b.indices[at]
			if b.Values != nil {
				b.Values[kept] = b.Values[at]
			}
			copy(rows[kept*columns:(kept+1)*columns], rows[int(at)*columns:])
			kept++
		}
		b.indptr[target+1] = int64(kept)
	}
	b.indices, b.Stamp = b.indices[:kept], tensor.NewStamp()
	b.Indices, b.along.Rows = b.indices, rows[:kept*columns]
	if b.Values != nil {
		b.Values = b.Values[:kept]
	}
}
