package vicinity

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Rows are rows of features of some remote vertices. They are immutable and safe for
// concurrent use.
type Rows struct {
	places
	Far features.Far

	after uint32 // the place of the first of them in features.Store
}

// Place returns the place of a vertex's row in features.Store, if it is one of them.
func (r *Rows) Place(v uint32) (uint32, bool) {
	if r == nil {
		return 0, false
	}
	i, ok := r.of(v)
	return r.after + uint32(i), ok
}

// Bytes returns the memory that they take.
func (r *Rows) Bytes() uint64 {
	if r == nil {
		return 0
	}
	return r.places.bytes() + r.Far.Bytes()
}

// Has reports whether the row of a vertex is local.
func (s *Source) Has(v uint32) bool { return s.store.Has(v) }

// Rows fetches the rows of ascending remote vertices. Those that before has are not
// requested.
func (s *Source) Rows(ctx context.Context, vertices []uint32, before *Rows, tally *peer.Tally) (*Rows, error) {
	var asked []uint32
	for _, v := range vertices {
		if _, ok := before.Place(v); !ok {
			asked = append(asked, v)
		}
	}
	var came gather.Rows
	if len(asked) > 0 {
		if s.rows == nil {
			return nil, fmt.Errorf("the features of vertex %d should be here and are not", asked[0])
		}
		if err := s.rows.Bring(ctx, &came, asked, tally); err != nil {
			return nil, err
		}
	}
	r := &Rows{places: newPlaces(slices.Clone(vertices), s.layout.Vertices()), after: s.store.Vertices()}
	next := 0
	err := r.Far.Pick(s.form, len(vertices), func(i int) (*features.Far, int) {
		if place, ok := before.Place(vertices[i]); ok {
			return &before.Far, int(place - before.after)
		}
		next++
		return &came.Far, int(came.Places[0][next-1] - r.after)
	})
	if err != nil {
		return nil, fmt.Errorf("keep rows of other nodes: %w", err)
	}
	return r, nil
}
