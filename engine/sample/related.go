package sample

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// relations are those of the edges of each part, in the order of parts; of is nil if the graph
// has none. They are not among the weights of parts, so that models that know no relations see
// edges without weights.
type relations struct {
	of   [][]float32
	once sync.Once
	seen *Topology // the same topology with relations for weights
}

// relate takes the relations of shards in this order.
func (t *Topology) relate(shards []*graph.Shard, order []int) {
	if shards[order[0]].Related == nil {
		return
	}
	for _, i := range order {
		if s := shards[i]; s.Vertices > 0 && s.Related != nil {
			t.relations.of = append(t.relations.of, s.Related.Of)
		}
	}
}

// formed returns the topology as blocks of a form are drawn from it: with the relations of edges
// in place of weights, if the form has relations. They then travel as weights do.
func (t *Topology) formed(f Form) *Topology {
	if f.Relations == 0 || len(t.relations.of) != len(t.parts) {
		return t
	}
	t.relations.once.Do(func() {
		r := &Topology{
			vertices: t.vertices, edges: t.edges, partial: t.partial, near: t.near, shift: t.shift,
			inverses: t.inverses, parts: slices.Clone(t.parts),
		}
		for i := range r.parts {
			if r.parts[i].far == nil {
				r.parts[i].weights = t.relations.of[i]
			}
		}
		t.relations.seen = r
	})
	return t.relations.seen
}

// checkRelations returns an error unless drawn rows have the relations that the form has.
func (s *Sampler) checkRelations(d *Drawn) error {
	n := s.o.Form.Relations
	if n == 0 || len(d.Sources) == 0 {
		return nil
	}
	if len(d.Weights) != len(d.Sources) {
		return errors.New("rows came without the relations of their edges: run the same version on all nodes")
	}
	for _, x := range d.Weights {
		if !(x >= 0 && x < float32(n)) {
			return fmt.Errorf("an edge came with the relation %v of %d", x, n)
		}
	}
	return nil
}

// Relational returns the topology with the relations of edges in place of their weights.
func (t *Topology) Relational() *Topology { return t.formed(Form{Relations: 1}) }

// Relates reports whether the edges have relations.
func (t *Topology) Relates() bool { return len(t.relations.of) > 0 }

// related is a block by relation: row r of target t is row t*relations + r of a matrix with the
// same columns. Its entries are those of the block, in the order of their relations.
type related struct {
	tensor.CSR
	indptr     []int64
	indices    []int32
	transposed tensor.Transpose
}

// Relate makes the block's matrix by relation from its values, which
// are the relations of its entries, or a matrix for each relation if the form keeps them apart. The
// block has no values then.
func (b *Block) Relate(f Form) {
	if f.Apart {
		b.relateApart(f)
		return
	}
	r, relations := &b.related, f.Relations
	from := b.Indptr[0]
	entries := int(b.Indptr[b.Rows] - from)
	r.indptr = slices.Grow(r.indptr[:0], b.Rows*relations+1)[:b.Rows*relations+1]
	r.indices = slices.Grow(r.indices[:0], entries)[:entries]
	r.indptr[0] = 0
	for t := range b.Rows {
		first, end := b.Indptr[t], b.Indptr[t+1]
		sources, of := b.Indices[first:end], b.Values[first:end]
		ends := r.indptr[t*relations+1:][:relations] // of each relation: how many, then where the next lies
		clear(ends)
		for _, x := range of {
			ends[int(x)]++
		}
		at := r.indptr[t*relations]
		for i, n := range ends {
			ends[i] = at
			at += n
		}
		for e, x := range of {
			r.indices[ends[int(x)]] = sources[e]
			ends[int(x)]++
		}
	}
	r.CSR = tensor.CSR{Rows: b.Rows * relations, Cols: b.Cols, Indptr: r.indptr, Indices: r.indices, Stamp: tensor.NewStamp()}
	b.Related, b.Values = &r.CSR, nil
}
