package tabular

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// ShareOf describes a source whose parts can be read on their nodes: its ids are 0, 1, 2 and
// so on, so that no node needs to know others. The parts that are read here are of node self.
func ShareOf(src graph.Source, self string) (s source.Sharing, ok bool) {
	t, ok := src.(*tables)
	if !ok || t.meta.Weighted || t.ids.text != nil || !t.ids.ints.Identity() {
		return s, false
	}
	s = source.Sharing{Format: t.meta.Format, Vertices: t.meta.Vertices, Width: t.meta.Features, LabelColumns: t.asked}
	edges, ok := t.set[edgesTable].(*joinedTable)
	if !ok {
		return s, false
	}
	for _, p := range edges.parts {
		own := source.SharedPart{Label: p.Label, Node: p.Node, Path: p.Path}
		if p.Far == nil {
			own.Node = self
		}
		s.Parts = append(s.Parts, own)
	}
	return s, true
}

// OpenShare opens parts of this machine.
func OpenShare(ctx context.Context, s source.Sharing, parts []source.SharedPart, memory uint64) (graph.Source, error) {
	var own []Part
	for _, p := range parts {
		own = append(own, Part{Label: p.Label, Node: p.Node, Path: p.Path})
	}
	t := &tables{meta: graph.Meta{Format: s.Format, Vertices: s.Vertices, Features: s.Width, Edges: 1 << 48}, share: true}
	t.ids = &idMap{ints: intids.Identity(s.Vertices)}
	if len(own) == 0 {
		return t, nil
	}
	var err error
	if t.set, err = joinParts(ctx, own, s.Format, opening{limit: memory, labels: s.LabelColumns}); err != nil {
		return nil, errors.Join(err, t.set.close())
	}
	if f := t.set[featuresTable]; f != nil && f.about().width != s.Width || t.set[edgesTable].about().width > 0 {
		return nil, errors.Join(t.changed(edgesTable), t.set.close())
	}
	return t, nil
}
