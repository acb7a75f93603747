package grappa

import (
	"context"
	"fmt"

	draws "github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// degrees are 1/sqrt(degree) of the vertices of other nodes that a view's contexts see,
// where blocks are normalised by it. They come with the view, since nothing is requested
// in a step.
type degrees struct {
	places  vicinity.Places
	inverse []float32
}

// degreeBytes is what one takes, beside what finds it.
const degreeBytes = 4

// bringDegrees fetches those that a run needs.
func (s *View) bringDegrees(ctx context.Context, run *train.Trainer) error {
	x := run.Session
	// All models of a sweep have one form. Whose turn it is, steps change meanwhile.
	// Who has all edges has all degrees.
	if len(s.far) == 0 || run.Data.Links != nil || run.Learners[0].Model.Form().Weighting != sample.Symmetric {
		return nil
	}
	d := &degrees{vicinity.NewPlaces(s.far, uint32(run.Data.Topology.Vertices())), make([]float32, len(s.far))}
	f := draws.New(x.Peers, x.Work, x.Layout)
	f.Tally, f.Kind = &s.Sent, peer.Shard
	if err := f.Inverses(ctx, s.far, d.inverse); err != nil {
		return fmt.Errorf("bring the degrees of vertices that groups see: %w", err)
	}
	for _, c := range s.contexts {
		if c != nil {
			c.Topology.Know(d.of)
		}
	}
	s.degrees = d
	return nil
}

// of sets to to those of some vertices, as sample.Inverses.
func (d *degrees) of(_ context.Context, vertices []uint32, to []float32) error {
	for i, v := range vertices {
		at, ok := d.places.Of(v)
		if !ok {
			return fmt.Errorf("a group trains in isolation and would read the degree of vertex %d, which it has not been given", v)
		}
		to[i] = d.inverse[at]
	}
	return nil
}

// bytes returns the memory that they take.
func (d *degrees) bytes() uint64 {
	if d == nil {
		return 0
	}
	return d.places.Bytes() + degreeBytes*uint64(len(d.inverse))
}
