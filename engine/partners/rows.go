// Package partners scores given pairs of vertices by their embeddings, and finds the vertices
// that each vertex most likely has an edge to. Embeddings are read from a file, so that memory
// does not depend on how many there are.
package partners

import (
	"context"
	"fmt"
	"io"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Rows are the embeddings of vertices in a file, one after the other.
type Rows struct {
	File    io.ReaderAt
	Count   int
	Columns int
}

// read reads the rows from first on that fit in a slice.
func (r *Rows) read(to []float32, first int) error {
	if len(to) == 0 {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(to))), 4*len(to))
	if _, err := r.File.ReadAt(b, int64(first)*int64(r.Columns)*4); err != nil {
		return fmt.Errorf("read embeddings back: %w", err)
	}
	return nil
}

// gather reads some rows. Those that follow each other are read together.
func (r *Rows) gather(to []float32, rows []uint32) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n] == rows[n-1]+1 {
			n++
		}
		if err := r.read(to[:n*r.Columns], int(rows[0])); err != nil {
			return err
		}
		to, rows = to[n*r.Columns:], rows[n:]
	}
	return nil
}

// tile is how many pairs are scored as one block, of which all but the diagonal is lost. Small
// products cost a call each, and large ones more than is kept.
const tile = 8

// A Scorer scores given pairs. It keeps its memory.
type Scorer struct {
	rows                     Rows
	blocks                   link.Blocks
	relation                 int
	sources, targets, scores []float32
}

// NewScorer returns a scorer of pairs of rows, of a relation where the decoder knows some.
func NewScorer(rows Rows, blocks link.Blocks, relation int) *Scorer {
	return &Scorer{
		rows: rows, blocks: blocks, relation: relation, scores: make([]float32, tile*tile),
		sources: make([]float32, tile*rows.Columns), targets: make([]float32, tile*rows.Columns),
	}
}

// Score sets to[i] to the logit of the edge from row sources[i] to row targets[i].
func (s *Scorer) Score(ctx context.Context, to []float32, sources, targets []uint32) error {
	for len(to) > 0 {
		n, columns := min(tile, len(to)), s.rows.Columns
		a, b := s.sources[:n*columns], s.targets[:n*columns]
		if err := s.rows.gather(a, sources[:n]); err != nil {
			return err
		}
		if err := s.rows.gather(b, targets[:n]); err != nil {
			return err
		}
		ends := tensor.OverF32(n, columns, a)
		s.blocks.Begin(ends, s.relation)
		s.blocks.Score(ctx, tensor.OverF32(n, n, s.scores[:n*n]), ends, tensor.OverF32(n, columns, b))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range n {
			to[i] = s.scores[i*n+i]
		}
		to, sources, targets = to[n:], sources[n:], targets[n:]
	}
	return nil
}
