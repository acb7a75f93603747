package vicinity

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Rows are rows of features of some remote vertices: dense ones in a vault, sparse ones in
// memory. They are immutable and safe for concurrent use.
type Rows struct {
	places Places
	Far    features.Far
	Kept   int // how many the source had kept, and did not request

	after uint32 // the place of the first of them in features.Store
}

// Place returns the place of a vertex's row in features.Store, if it is one of them.
func (r *Rows) Place(v uint32) (uint32, bool) {
	if r == nil {
		return 0, false
	}
	i, ok := r.places.Of(v)
	return r.after + uint32(i), ok
}

// Len counts them.
func (r *Rows) Len() int {
	if r == nil {
		return 0
	}
	return r.places.Len()
}

// Bytes returns how long they are, wherever they lie.
func (r *Rows) Bytes() uint64 {
	if r == nil {
		return 0
	}
	return r.Far.Bytes()
}

// Index returns the memory of what finds rows.
func (r *Rows) Index() uint64 {
	if r == nil {
		return 0
	}
	return r.places.Bytes()
}

// Has reports whether the row of a vertex is local.
func (s *Source) Has(v uint32) bool { return s.store.Has(v) }

// Reads reports whether the row of a vertex can be read here: it is local, or rows are learnt, of which
// each node has all.
func (s *Source) Reads(v uint32) bool { return s.store.Reads(v) }

// Rows fetches the rows of ascending remote vertices into a vault, some at a time. Those
// that before has are copied and not requested.
func (s *Source) Rows(ctx context.Context, in *Vault, vertices []uint32, before *Rows, tally *peer.Tally) (*Rows, error) {
	r := &Rows{places: NewPlaces(vertices, s.layout.Vertices()), after: s.store.Vertices()}
	var came gather.Rows
	var some features.Far // dense rows, until they are written
	words := array[byte]{in: in}
	r.Far.Clear(s.form)
	if !s.form.Sparse() {
		words.expect(len(vertices)*s.form.RowBytes() + len(padding))
	}
	most := max(1, s.most.rows/s.form.RowBytes())
	for first := 0; first < len(vertices); first += most {
		part := vertices[first:min(first+most, len(vertices))]
		to := &some
		if s.form.Sparse() {
			to = &r.Far
		}
		err := s.part(ctx, r, to, &came, part, before, tally)
		if err == nil && !s.form.Sparse() {
			err = words.add(some.Raw(s.form))
		}
		if err != nil {
			return nil, fmt.Errorf("keep rows of other nodes: %w", cmp.Or(err, words.drop()))
		}
	}
	if s.form.Sparse() {
		return r, nil
	}
	all, err := []byte(nil), words.add(padding[:])
	if err == nil {
		all, err = words.end()
	}
	if err != nil {
		return nil, fmt.Errorf("keep rows of other nodes: %w", cmp.Or(err, words.drop()))
	}
	r.Far.Over(s.form, len(vertices), all)
	return r, nil
}

// part appends the rows of some vertices to others.
func (s *Source) part(ctx context.Context, r *Rows, to *features.Far, came *gather.Rows, part []uint32, before *Rows, tally *peer.Tally) error {
	if s.rows != nil {
		s.rows.Hold()
		defer s.rows.Release()
	}
	came.Cached = 0
	if err := s.bringRows(ctx, came, part, before, tally); err != nil {
		return err
	}
	r.Kept += came.Cached
	kept, next := uint32(0), 0
	if came.Far.Kept != nil {
		kept = uint32(came.Far.Kept.Rows())
	}
	return to.Append(s.form, len(part), func(i int) (*features.Far, int) {
		if place, ok := before.Place(part[i]); ok {
			return &before.Far, int(place - before.after)
		}
		next++
		at := came.Places[0][next-1] - r.after
		if at < kept {
			return came.Far.Kept, int(at)
		}
		return &came.Far, int(at - kept)
	})
}

// Keep has rows kept that came before there was room for them, so that they do not come again.
func (s *Source) Keep(r *Rows) {
	if s.rows == nil || r.Len() == 0 || s.form.Sparse() {
		return
	}
	s.rows.Hold()
	defer s.rows.Release()
	s.rows.Put(r.places.set.All(), r.Far.Raw(s.form))
}

// padding follows dense rows, which are read in whole words.
var padding [16]byte

// bringRows fetches those rows of some vertices that are not in before.
func (s *Source) bringRows(ctx context.Context, to *gather.Rows, vertices []uint32, before *Rows, tally *peer.Tally) error {
	var asked []uint32
	for _, v := range vertices {
		if _, ok := before.Place(v); !ok {
			asked = append(asked, v)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if s.rows == nil {
		return fmt.Errorf("the features of vertex %d should be here and are not", asked[0])
	}
	return s.rows.Bring(ctx, to, asked, tally)
}

// RowBytes returns the size of a dense row.
func (s *Source) RowBytes() uint64 { return uint64(s.form.RowBytes()) }
