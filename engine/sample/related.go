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
	from []graph.FeatureRange // the features of the sources of each; nil: they are not known
	once sync.Once
	seen *Topology // the same topology with relations for weights
}

// relate takes the relations of shards in this order.
func (t *Topology) relate(shards []*graph.Shard, order []int) {
	if shards[order[0]].Related == nil {
		return
	}
	t.relations.from = shards[order[0]].Related.Types.Sources()
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
		r.relations.from = t.relations.from
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

// Related is a block by relation. A pair of a relation and a target has a row only if it has
// entries, so that layers compute nothing for relations that do not end at a target.
type Related struct {
	// The rows are those of relation 0, then those of relation 1, and so on, each by ascending
	// target, with the block's columns. A row has its entries in the order of the block.
	tensor.CSR
	// First is the first row of each relation, then the number of rows.
	First []int
	// Pairs says which rows are of a target: row t has those of target t for columns.
	Pairs tensor.CSR
	// Columns are which features the sources of each relation have, all others being zeros, and Each
	// has the rows of each relation; nil: they are not known.
	Columns []graph.FeatureRange
	Each    []tensor.CSR
}

// related is the memory of a block by relation.
type related struct {
	Related
	indptr     []int64
	indices    []int32
	transposed tensor.Transpose
	pairs      tensor.Transpose // of Pairs: one entry for each row
	byTarget   []int64          // the Indptr of Pairs
	rows       []int32          // its Indices
	next       []cursor         // of each relation
	places     []uint32         // of sources, see Stand

	// The memory of other kinds of blocks by relation.
	apart    apart
	together together
}

// A cursor is where the next row of a relation and its next entry lie; at first, how many there are.
type cursor struct {
	rows, entries int
	target        int // of the last row, plus one
}

// Relate makes the block's matrix by relation from its values, which
// are the relations of its entries, or a matrix for each relation if the form keeps them apart, or
// those of all relations together. The block has no values then.
func (b *Block) Relate(f Form) {
	switch {
	case f.Apart:
		b.relateApart(f)
		return
	case f.Together:
		b.related.together.relate(b, f)
		return
	}
	r := &b.related
	pairs, entries := r.count(b, f.Relations), int(b.Indptr[b.Rows]-b.Indptr[0])
	r.indptr = append(slices.Grow(r.indptr[:0], pairs+1)[:pairs], int64(entries))
	r.indices = slices.Grow(r.indices[:0], entries)[:entries]
	r.pairs.Rows = slices.Grow(r.pairs.Rows[:0], pairs)[:pairs]
	for t := range b.Rows {
		first, end := b.Indptr[t], b.Indptr[t+1]
		of := b.Values[first:end]
		for i, source := range b.Indices[first:end] {
			c := &r.next[int(of[i])]
			if c.target != t+1 {
				c.target = t + 1
				r.indptr[c.rows], r.pairs.Rows[c.rows] = int64(c.entries), int32(t)
				c.rows++
			}
			r.indices[c.entries] = source
			c.entries++
		}
	}
	r.CSR = tensor.CSR{Rows: pairs, Cols: b.Cols, Indptr: r.indptr, Indices: r.indices, Stamp: tensor.NewStamp()}
	r.pair(b.Rows)
	r.Columns = nil // those of the block before
	b.Related, b.Values = &r.Related, nil
}

// describe adds which features the sources of each relation have.
func (r *Related) describe(columns []graph.FeatureRange) {
	if r.Columns = nil; len(columns) != len(r.First)-1 {
		return
	}
	r.Columns, r.Each = columns, slices.Grow(r.Each[:0], len(columns))[:len(columns)]
	for i := range r.Each {
		first, rows := r.First[i], r.First[i+1]-r.First[i]
		indptr := r.Indptr[first:][:rows+1]
		// Without a stamp: a pass reads each of them once, so that no device need keep a copy.
		r.Each[i] = tensor.CSR{Rows: rows, Cols: r.Cols, Indptr: indptr, Indices: r.Indices[:indptr[rows]]}
	}
}

// Stand returns the places of the sources' rows, with that of the first one for all sources that have the
// same features as it, so that fewer rows are read from memory. It is valid until the next block.
func (b *Block) Stand(places []uint32) []uint32 {
	r := &b.related
	if b.Related == nil || r.Columns == nil {
		return places
	}
	r.places = append(r.places[:0], places...)
	for i, of := range r.Columns {
		sources := r.Indices[r.Indptr[r.First[i]]:r.Indptr[r.First[i+1]]]
		if !of.Alike || len(sources) == 0 {
			continue
		}
		first := r.places[sources[0]]
		for _, s := range sources {
			r.places[s] = first
		}
	}
	return r.places
}

// count sets where the rows and entries of each relation begin, and returns the number of rows. It
// counts the rows of each target, too.
func (r *related) count(b *Block, relations int) (pairs int) {
	r.next = slices.Grow(r.next[:0], relations)[:relations]
	clear(r.next)
	r.byTarget = append(slices.Grow(r.byTarget[:0], b.Rows+1), 0)
	for t := range b.Rows {
		for _, x := range b.Values[b.Indptr[t]:b.Indptr[t+1]] {
			c := &r.next[int(x)]
			c.entries++
			if c.target != t+1 {
				c.target = t + 1
				c.rows++
				pairs++
			}
		}
		r.byTarget = append(r.byTarget, int64(pairs))
	}
	r.First = slices.Grow(r.First[:0], relations+1)[:0]
	at := cursor{}
	for i, c := range r.next {
		r.First = append(r.First, at.rows)
		r.next[i] = cursor{rows: at.rows, entries: at.entries}
		at.rows, at.entries = at.rows+c.rows, at.entries+c.entries
	}
	r.First = append(r.First, pairs)
	return pairs
}

// pair makes the matrix of the rows of each target from the target of each row.
func (r *related) pair(targets int) {
	n := len(r.pairs.Rows)
	r.rows = slices.Grow(r.rows[:0], n)[:n]
	for row, t := range r.pairs.Rows {
		at := r.byTarget[t]
		r.byTarget[t]++
		r.rows[at] = int32(row)
	}
	// Each target's first row is now that of the next one.
	copy(r.byTarget[1:], r.byTarget[:targets])
	r.byTarget[0] = 0
	r.Pairs = tensor.CSR{Rows: targets, Cols: n, Indptr: r.byTarget, Indices: r.rows, Stamp: tensor.NewStamp()}
}

// transpose builds the transposes. That of Pairs has one entry in each row.
func (r *related) transpose() {
	transpose(&r.CSR, &r.transposed)
	n := len(r.rows)
	r.pairs.Indptr = slices.Grow(r.pairs.Indptr[:0], n+1)[:n+1]
	r.pairs.Edges = slices.Grow(r.pairs.Edges[:0], n)[:n]
	for i, row := range r.rows {
		r.pairs.Indptr[i+1], r.pairs.Edges[row] = int64(i+1), int32(i)
	}
	r.pairs.Indptr[0] = 0
	r.Pairs.Transposed, r.Pairs.Stamp = &r.pairs, tensor.NewStamp()
}

// PairsAtMost returns how many pairs of a relation and a target a block of this size can have that
// have entries.
func (z Size) PairsAtMost(relations int) int { return min(z.Entries, z.Targets*relations) }
