package gather

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// answer implements peer.Handler: it sends rows of local vertices.
func (s *Source) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.check(&q); err != nil {
		return err
	}
	spare, _ := s.spare.Get().(*[]byte)
	if spare == nil {
		spare = new([]byte)
	}
	defer s.spare.Put(spare)
	*spare = (*spare)[:0]
	if !s.form.Sparse() {
		*spare = slices.Grow(*spare, len(q.Body)/4*s.form.RowBytes())
	}
	for ids := q.Body; len(ids) > 0; ids = ids[4:] {
		before := len(*spare)
		*spare = s.store.Append(*spare, s.form, binary.LittleEndian.Uint32(ids))
		if len(*spare) > s.most.answer { // of sparse rows: the others are requested again
			if before == 0 {
				return fmt.Errorf("%w: the row of vertex %d takes more than the %d bytes of an answer", peer.ErrRefused, binary.LittleEndian.Uint32(ids), s.most.answer)
			}
			*spare = (*spare)[:before]
			break
		}
	}
	return reply(*spare)
}

// check returns an error if a question can't be answered.
func (s *Source) check(q *peer.Query) error {
	rows := len(q.Body) / 4
	switch {
	case q.Part != s.form.Code():
		return fmt.Errorf("%w: rows of features are asked for in form %#x and are in form %#x here: all nodes need the same settings and program", peer.ErrRefused, q.Part, s.form.Code())
	case len(q.Body)%4 != 0 || len(q.Body) > s.most.question:
		return fmt.Errorf("%w: a question of %d bytes is not the ids of vertices", peer.ErrRefused, len(q.Body))
	case !s.form.Sparse() && rows > s.most.answer/s.form.RowBytes():
		return fmt.Errorf("%w: %d rows are too many for an answer", peer.ErrRefused, rows)
	}
	for ids := q.Body; len(ids) > 0; ids = ids[4:] {
		if v := binary.LittleEndian.Uint32(ids); v >= s.store.Vertices() || !s.store.Has(v) {
			return fmt.Errorf("%w: the features of vertex %d are not here", peer.ErrRefused, v)
		}
	}
	return nil
}
