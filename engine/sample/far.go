package sample

import (
	"context"
	"errors"
	"fmt"
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
	Degrees []int32 // degree of each vertex in the graph
	Indptr  []int64 // of the drawn entries
	Sources []int32
	Weights []float32 // nil if the graph has none
}

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
	r.drawn, r.degree = r.held, d.drawn.Degrees[d.next]
	d.next++
}
