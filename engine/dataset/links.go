package dataset

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
)

// hide takes the edges of triples for validation and test out of the topology, so that nothing
// that reads it can pass messages along them.
func (d *Graph) hide() (err error) {
	related := d.Shards[0].Related
	if related == nil || !related.Given {
		return nil
	}
	d.whole = d.Topology
	seen := related.Seen()
	if d.Topology, err = d.whole.Without(context.Background(), func(_, _ uint32, number int) bool { return number >= seen }); err != nil {
		return err
	}
	d.Copied = d.Topology.Bytes(d.whole)
	return nil
}

// Link has pairs of vertices learnt in place of targets: edges of validation and test leave the
// topology, and the dataset is described as models of such a task see it. All edges must be
// here.
func (d *Graph) Link(ctx context.Context, s *link.Spec, seed uint64) (err error) {
	whole := d.Topology
	if d.whole != nil {
		whole = d.whole
	}
	if d.Links, err = link.New(ctx, s, seed, whole); err != nil {
		return err
	}
	if d.whole == nil {
		if d.Topology, err = whole.Without(ctx, d.Links.Hidden); err != nil {
			return err
		}
	}
	d.Copied = d.Topology.Bytes(whole) + d.Links.Bytes()
	d.Training = make([]uint32, len(d.Links.Of[graph.Train]))
	for i := range d.Training {
		d.Training[i] = uint32(i)
	}
	d.Split, d.About = 0, d.About.Linked(s)
	split := &d.About.Splits[0]
	split.Train, split.Val, split.Test = uint64(len(d.Training)), uint64(len(d.Links.Of[graph.Validation])), uint64(len(d.Links.Of[graph.Test]))
	return nil
}

// Linked returns the description of a graph of which pairs are learnt. Its split counts what
// to expect, as if no edge had a reverse.
func (a About) Linked(s *link.Spec) About {
	share := func(part int) uint64 {
		if s.Given != nil {
			return s.Given[part]
		}
		if s.Relation != nil {
			return uint64(s.Split[part] * float64(s.Relation.Edges))
		}
		return uint64(s.Split[part] * float64(a.Edges))
	}
	a.Classes, a.Targets = s.Width, graph.OneClass
	a.Splits = []graph.SplitInfo{{Train: share(0), Val: share(1), Test: share(2)}}
	return a
}

// LinkBytes returns about the least that Link takes of memory: the copied edges, and pairs as if
// each edge had a reverse.
func (a *About) LinkBytes(s *link.Spec) (bytes uint64) {
	const ofPair, ofEdge, ofVertex, ofPlace = 12, 4, 8, 8
	if s.Given != nil {
		if held := s.Given[1] + s.Given[2]; s.Divided() {
			// Each edge that is not held out is in the copy, or its reverse is, or it is a pair to compare with.
			return ofVertex*a.Vertices + 2*ofEdge*(a.Edges-min(a.Edges, held)) + ofPair*(s.Given[0]/2+held)
		}
		// The copy has relations and edges back; pairs are there in three orders.
		return ofVertex*a.Vertices + 2*ofEdge*a.Edges + 3*ofPair*(s.Given[0]+s.Given[1]+s.Given[2])
	}
	if r := s.Relation; r != nil {
		// The copy has relations, and each pair may have a target of its own.
		if bytes = (ofPair + 4) * r.Edges; s.Split[0] < 1 {
			bytes += ofVertex*a.Vertices + 2*ofEdge*a.Edges
		}
		return bytes
	}
	if s.Split[0] < 1 {
		bytes = ofVertex*a.Vertices + uint64(s.Split[0]*float64(ofEdge*a.Edges))
		if a.EdgeFeatures > 0 {
			bytes += uint64(s.Split[0] * float64(ofPlace*a.Edges))
		}
	}
	return bytes + ofPair*a.Edges/2
}
