package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

var errDegreesElsewhere = errors.New("sample: whole layers of a part of the graph need degrees of vertices on other nodes")

// Part makes a part of a whole layer: the block of the n targets starting at first, with
// all vertices as sources and all neighbours. The targets must be near, and all vertices
// where values depend on degrees. If one shard
// already has it in the wanted form nothing is copied, and the block is valid only as
// long as the shard.
func (s *Sampler) Part(b *Block, first, n int) error {
	if s.t.weighed {
		return errors.New("sample: whole layers of a part of the graph have no messages that count more than once")
	}
	if s.o.Form.Along {
		return errors.New("sample: whole layers of a part of the graph have no matrices of entries")
	}
	if s.degrees.inverse != nil && s.degrees.flat == nil {
		return errDegreesElsewhere
	}
	if first < 0 || n < 0 || first > s.t.vertices-n {
		return fmt.Errorf("sample: there are no %d vertices from %d on in a graph of %d", n, first, s.t.vertices)
	}
	edges, within := int64(0), 0
	for i := range s.t.parts {
		p := &s.t.parts[i]
		from, to := max(first, int(p.first)), min(first+n, int(p.end))
		if from < to {
			if p.far != nil {
				return fmt.Errorf("sample: the edges of the vertices %d to %d are on another node: take those of this node's shards", from, to-1)
			}
			edges += p.indptr[to-int(p.first)] - p.indptr[from-int(p.first)]
			within = i
		}
	}
	if s.o.Form.SelfLoops {
		edges += int64(n)
	}
	if edges > math.MaxInt32 {
		return fmt.Errorf("sample: the %d vertices from %d on have %d edges, and a block at most %d: take fewer at a time", n, first, edges, math.MaxInt32)
	}
	if rows := int64(n) * int64(s.o.Form.Relations); s.o.Form.Apart && rows > math.MaxInt32 {
		return fmt.Errorf("sample: %d vertices by %d relations are %d rows, and a block has at most %d: take fewer at a time", n, s.o.Form.Relations, rows, math.MaxInt32)
	}
	b.Own, b.Vertices, b.Transposed, b.Stamp, b.There = first, nil, nil, tensor.NewStamp(), nil
	b.Rows, b.Cols = n, s.t.vertices
	b.Related, b.Apart, b.Reach, b.Idle, b.Together, b.Along = nil, nil, nil, nil, nil, nil
	if n > 0 && !s.o.Form.SelfLoops && s.o.Form.Relations == 0 && s.degrees.inverse == nil && first >= int(s.t.parts[within].first) {
		p := &s.t.parts[within]
		b.Indptr, b.Indices, b.Values = p.indptr[first-int(p.first):][:n+1], p.indices, nil
		if w := s.o.Form.Weighting; w == Sums || w == Own {
			b.Values = p.weights
		}
		return nil
	}
	b.indptr = append(slices.Grow(b.indptr[:0], n+1), 0)
	b.indices, b.values = slices.Grow(b.indices[:0], int(edges)), b.values[:0]
	if s.o.Form.Valued() {
		b.values = slices.Grow(b.values, int(edges)+1) // nil has another meaning than empty
	}
	for v := first; v < first+n; v++ {
		s.appendRow(b, uint32(v))
	}
	b.Indptr, b.Indices, b.Values = b.indptr, b.indices, nil
	if s.o.Form.Valued() {
		b.Values = b.values
	}
	if s.o.Form.Relations > 0 {
		b.Relate(s.o.Form)
	}
	return nil
}

// appendRow appends the whole row of v, its sources by their ids.
func (s *Sampler) appendRow(b *Block, v uint32) {
	at := len(b.indices)
	sources, weights := s.t.Row(int(v))
	loop := false
	if s.o.Form.SelfLoops {
		part := s.t.of(v)
		loop = s.degrees.lacks(part, v-s.t.parts[part].first)
	}
	if loop {
		b.indices = append(b.indices, int32(v))
	}
	b.indices = append(b.indices, sources...)
	b.indptr = append(b.indptr, int64(len(b.indices)))
	if !s.o.Form.Valued() {
		return
	}
	if loop {
		b.values = append(b.values, 1)
	}
	if weights != nil {
		b.values = append(b.values, weights...)
	} else {
		for range sources {
			b.values = append(b.values, 1)
		}
	}
	if s.degrees.flat != nil {
		s.normalise(b.values[at:], b.indices[at:], v)
	}
}
