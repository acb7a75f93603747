package gather

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// An answer is the memory of one: bytes of rows, or where they are in shards.
type answer struct {
	bytes []byte
	rows  [][]byte
}

// answer implements peer.Handler: it sends rows of local vertices. Those that are sent as
// they are stored are not copied before: they may be many, and several nodes ask at once.
func (s *Source) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.check(&q); err != nil {
		return err
	}
	if s.gate != nil {
		return s.answerChanging(ctx, &q, reply)
	}
	a, _ := s.spare.Get().(*answer)
	if a == nil {
		a = new(answer)
	}
	defer s.spare.Put(a)
	if s.stored(a, q.Body) {
		return reply(a.rows...)
	}
	if err := s.append(a, &q); err != nil {
		return err
	}
	return reply(a.bytes)
}

// answerChanging answers with a copy of rows that change, as they are at the time that is asked for.
func (s *Source) answerChanging(ctx context.Context, q *peer.Query, reply func(parts ...[]byte) error) error {
	a, _ := s.spare.Get().(*answer)
	if a == nil {
		a = new(answer)
	}
	defer s.spare.Put(a)
	if err := s.gate.Enter(ctx, q.Epoch, q.Step); err != nil {
		return err
	}
	err := s.append(a, q)
	if s.gate.Leave(); err != nil {
		return err
	}
	return reply(a.bytes)
}

// stored sets rows to those of vertices in their shards, and reports whether all are sent as
// they are there.
func (s *Source) stored(a *answer, ids []byte) bool {
	a.rows = slices.Grow(a.rows[:0], len(ids)/4)
	for ; len(ids) > 0; ids = ids[4:] {
		row := s.store.Stored(s.form, binary.LittleEndian.Uint32(ids))
		if row == nil {
			return false
		}
		a.rows = append(a.rows, row)
	}
	return true
}

// append sets bytes to the rows of vertices, as many as an answer may have: no more than the asker
// takes, and is charged for.
func (s *Source) append(a *answer, q *peer.Query) error {
	ids, most := q.Body, min(s.most.answer, q.Limit)
	a.bytes = a.bytes[:0]
	if !s.form.Sparse() && len(ids)/4*s.form.RowBytes() > most {
		return fmt.Errorf("%w: %d rows are more than the %d bytes of an answer", peer.ErrRefused, len(ids)/4, most)
	}
	if !s.form.Sparse() {
		a.bytes = slices.Grow(a.bytes, len(ids)/4*s.form.RowBytes())
	}
	for ; len(ids) > 0; ids = ids[4:] {
		before := len(a.bytes)
		a.bytes = s.store.Append(a.bytes, s.form, binary.LittleEndian.Uint32(ids))
		if len(a.bytes) > most { // of sparse rows: the others are requested again
			if before == 0 {
				return fmt.Errorf("%w: the row of vertex %d takes more than the %d bytes of an answer", peer.ErrRefused, binary.LittleEndian.Uint32(ids), most)
			}
			a.bytes = a.bytes[:before]
			break
		}
	}
	return nil
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
		if v := binary.LittleEndian.Uint32(ids); v >= s.store.Vertices() || !s.store.Serves(v) {
			return fmt.Errorf("%w: the features of vertex %d are not here", peer.ErrRefused, v)
		}
	}
	return nil
}
