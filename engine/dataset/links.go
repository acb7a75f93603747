package dataset

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
)

// Link has pairs of vertices learnt in place of targets: edges of validation and test leave the
// topology, and the dataset is described as models of such a task see it. All edges must be
// here.
func (d *Graph) Link(ctx context.Context, s *link.Spec, seed uint64) (err error) {
	whole := d.Topology
	if d.Links, err = link.New(ctx, s, seed, whole); err != nil {
		return err
	}
	if d.Topology, err = whole.Without(ctx, d.Links.Hidden); err != nil {
		return err
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
	share := func(part int) uint64 { return uint64(s.Split[part] * float64(a.Edges)) }
	a.Classes, a.Targets = s.Width, graph.OneClass
	a.Splits = []graph.SplitInfo{{Train: share(0), Val: share(1), Test: share(2)}}
	return a
}

// LinkBytes returns about the least that Link takes of memory: the copied edges, and pairs as if
// each edge had a reverse.
func (a *About) LinkBytes(s *link.Spec) (bytes uint64) {
	const ofPair, ofEdge, ofVertex = 8, 4, 8
	if s.Split[0] < 1 {
		bytes = ofVertex*a.Vertices + uint64(s.Split[0]*float64(ofEdge*a.Edges))
	}
	return bytes + ofPair*a.Edges/2
}
