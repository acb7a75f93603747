package sample

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Without returns a copy of the topology, all of whose edges must be here, in which edges are
// left out as if the graph never had them: degrees, weights and self-loops are those of the rest.
// Parts that lose nothing are shared.
func (t *Topology) Without(ctx context.Context, hidden func(target, source uint32) bool) (*Topology, error) {
	to := &Topology{vertices: t.vertices, near: t.near, shift: t.shift}
	for i := range t.parts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := &t.parts[i]
		if p.far != nil || p.times != nil || p.degrees != nil {
			return nil, fmt.Errorf("sample: the edges of the vertices %d to %d are not all here", p.first, p.end-1)
		}
		of := p.without(hidden)
		to.edges += int64(len(of.indices))
		to.parts = append(to.parts, of)
	}
	return to, nil
}

// without returns a part without hidden edges.
func (p *part) without(hidden func(target, source uint32) bool) part {
	rows := int(p.end - p.first)
	to := part{first: p.first, end: p.end, indptr: make([]int64, 1, rows+1)}
	kept := int64(0)
	for v := p.first; v < p.end; v++ {
		sources, _ := p.row(v)
		for _, u := range sources {
			if !hidden(v, uint32(u)) {
				kept++
			}
		}
		to.indptr = append(to.indptr, kept)
	}
	if kept == p.indptr[rows]-p.indptr[0] {
		return *p
	}
	to.indices = make([]int32, 0, kept)
	if p.weights != nil {
		to.weights = make([]float32, 0, kept)
	}
	for v := p.first; v < p.end; v++ {
		sources, weights := p.row(v)
		for i, u := range sources {
			if hidden(v, uint32(u)) {
				continue
			}
			to.indices = append(to.indices, u)
			if weights != nil {
				to.weights = append(to.weights, weights[i])
			}
		}
	}
	return to
}

// Bytes returns the memory of a copy that Without has made of another topology.
func (t *Topology) Bytes(of *Topology) (bytes uint64) {
	for i := range t.parts {
		p, q := &t.parts[i], &of.parts[i]
		if len(p.indices) != len(q.indices) {
			bytes += 8*uint64(cap(p.indptr)) + 4*uint64(cap(p.indices)+cap(p.weights))
		}
	}
	return bytes
}

// Remove takes entries out of a sampled block that has not been transposed. remove is asked of
// target and source by their rows. Sources stay, even if nothing is left that comes from them.
func (b *Block) Remove(remove func(target, source int) bool) {
	kept, at := 0, b.indptr[0]
	for target := range b.Rows {
		end := b.indptr[target+1]
		for ; at < end; at++ {
			if remove(target, int(b.Indices[at])) {
				continue
			}
			b.indices[kept] = b.indices[at]
			if b.Values != nil {
				b.Values[kept] = b.Values[at]
			}
			kept++
		}
		b.indptr[target+1] = int64(kept)
	}
	b.indices, b.Stamp = b.indices[:kept], tensor.NewStamp()
	b.Indices = b.indices
	if b.Values != nil {
		b.Values = b.Values[:kept]
	}
}
