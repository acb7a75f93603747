package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Far draws the rows of vertices whose edges are on other nodes, as a Drawer there would;
// fanout is that of the hop. Its results are checked: there must be one row per vertex,
// and every source must be in the graph.
type Far interface {
	// Draw sets to to the rows of vertices, in order.
	Draw(ctx context.Context, epoch, step uint64, hop, fanout int, vertices []uint32, to *Drawn) error
}

// Drawn holds drawn rows, before a sampler's form is applied. It reuses its memory.
type Drawn struct {
	// Degrees has the degree of each vertex in the graph, with the bit OwnLoop set if the
	// form adds self-loops and the vertex has one of its own.
	Degrees []int32
	Indptr  []int64 // of the drawn entries
	Sources []int32
	Weights []float32 // nil if the graph has none
}

// OwnLoop is a bit of Drawn.Degrees, and Degree is the others.
const (
	OwnLoop = math.MinInt32
	Degree  = math.MaxInt32
)

// Inverses sets to to 1/sqrt(degree) of vertices whose edges are on other nodes, with the
// self-loops that the form adds.
type Inverses func(ctx context.Context, vertices []uint32, to []float32) error

// Kept returns how many entries of a row are drawn.
func Kept(degree int32, fanout int) int32 {
	if fanout == 0 || int(degree) <= fanout {
		return degree
	}
	return int32(fanout)
}

// distant holds a sampler's remote rows of one hop.
type distant struct {
	vertices []uint32 // in the order of targets
	drawn    Drawn
	next     int // index in drawn of the next row for draw
}

var errNobody = errors.New("the edges of some vertices are on other nodes, and nobody asks there")

// fetch draws the rows of all remote targets in one request.
func (s *Sampler) fetch(ctx context.Context, targets []uint32, epoch, step uint64, hop, fanout int) error {
	d := &s.distant
	d.vertices, d.next = d.vertices[:0], 0
	for _, v := range targets {
		if !s.t.Near(v) {
			d.vertices = append(d.vertices, v)
		}
	}
	if len(d.vertices) == 0 {
		return nil
	}
	if s.o.Far == nil {
		return errNobody
	}
	if err := s.o.Far.Draw(ctx, epoch, step, hop, fanout, d.vertices, &d.drawn); err != nil {
		return err
	}
	n := len(d.vertices)
	if len(d.drawn.Degrees) != n || len(d.drawn.Indptr) != n+1 {
		return fmt.Errorf("%d rows were asked for, and %d came", n, len(d.drawn.Degrees))
	}
	if err := s.checkRelations(&d.drawn); err != nil {
		return err
	}
	s.parts[len(s.parts)-1] = part{indices: d.drawn.Sources, weights: d.drawn.Weights}
	return nil
}

// weave takes the next remote row. To the later stages it is a row of one more part, with
// all its entries drawn.
func (s *Sampler) weave(r *row) {
	d := &s.distant
	from, to := d.drawn.Indptr[d.next], d.drawn.Indptr[d.next+1]
	r.part, r.from = uint16(len(s.parts)-1), from
	r.held = int32(to - from)
	r.drawn, r.degree = r.held, d.drawn.Degrees[d.next]&Degree
	r.loop = s.o.Form.SelfLoops && d.drawn.Degrees[d.next]&OwnLoop == 0
	d.next++
}

// ends are 1/sqrt(degree) of the vertices of a batch, of which some are on other nodes.
type ends struct {
	inverse []float32 // of all
	far     []uint32  // vertices on other nodes
	numbers []int32   // theirs in the batch
	brought []float32 // theirs
}

var errWrongDegree = errors.New("1/sqrt(degree) of a vertex on another node is no number, or negative")

// normaliseAll multiplies all values by 1/sqrt(degree) of both ends of their edges. It asks
// for those of vertices on other nodes at once.
func (s *Sampler) normaliseAll(ctx context.Context, b *Batch) error {
	e := &s.ends
	e.inverse = slices.Grow(e.inverse[:0], len(b.vertices))[:len(b.vertices)]
	e.far, e.numbers = e.far[:0], e.numbers[:0]
	for i, v := range b.vertices {
		part := s.t.of(v)
		if here := s.degrees.inverse[part]; here != nil {
			e.inverse[i] = unsigned(here[v-s.t.parts[part].first])
			continue
		}
		e.far, e.numbers = append(e.far, v), append(e.numbers, int32(i))
	}
	if err := s.bringEnds(ctx); err != nil {
		return err
	}
	for i := range b.Blocks {
		block := &b.Blocks[i]
		for t := range block.Rows {
			own := e.inverse[t]
			from, to := block.Indptr[t], block.Indptr[t+1]
			values := block.Values[from:to]
			for j, u := range block.Indices[from:to] {
				values[j] *= own * e.inverse[u]
			}
		}
	}
	return nil
}

// bringEnds sets those of vertices on other nodes.
func (s *Sampler) bringEnds(ctx context.Context) error {
	e := &s.ends
	if len(e.far) == 0 {
		return nil
	}
	inverses := s.o.Inverses
	if s.t.inverses != nil {
		inverses = s.t.inverses
	}
	if inverses == nil {
		return errNobody
	}
	e.brought = slices.Grow(e.brought[:0], len(e.far))[:len(e.far)]
	if err := inverses(ctx, e.far, e.brought); err != nil {
		return err
	}
	for i, f := range e.brought {
		if !(f >= 0 && f <= math.MaxFloat32) {
			return errWrongDegree
		}
		e.inverse[e.numbers[i]] = f
	}
	return nil
}
