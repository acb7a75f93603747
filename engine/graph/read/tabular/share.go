package tabular

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Sharing describes a source in parts, so that each node can read its own parts as what they
// are in the whole graph.
type Sharing struct {
	Parts    []SharedPart
	Format   string
	Vertices uint32
	Width    int // of features
}

// A SharedPart is one of the parts.
type SharedPart struct{ Label, Node, Path string }

// maxParts bounds the parts of a Sharing from another node.
const maxParts = 1 << 12

// ShareOf describes a source whose parts can be read on their nodes: its ids are 0, 1, 2 and
// so on, so that no node needs to know others. The parts that are read here are of node self.
func ShareOf(src graph.Source, self string) (Sharing, bool) {
	t, ok := src.(*tables)
	if !ok || t.meta.Weighted || t.ids.text != nil || !t.ids.ints.Identity() {
		return Sharing{}, false
	}
	s := Sharing{Format: t.meta.Format, Vertices: t.meta.Vertices, Width: t.meta.Features}
	edges, ok := t.set[edgesTable].(*joinedTable)
	if !ok {
		return Sharing{}, false
	}
	for _, p := range edges.parts {
		own := SharedPart{Label: p.Label, Node: p.Node, Path: p.Path}
		if p.Far == nil {
			own.Node = self
		}
		s.Parts = append(s.Parts, own)
	}
	return s, true
}

// Open opens the parts of this node.
func (s Sharing) Open(ctx context.Context, self string, memory uint64) (graph.Source, error) {
	if len(s.Parts) > maxParts || s.Vertices == 0 || s.Vertices > graph.MaxVertices || s.Width < 0 || s.Width > source.MaxDenseFeatures ||
		s.Format != "csv" && s.Format != "parquet" {
		return nil, errBatch
	}
	var own []Part
	for _, p := range s.Parts {
		if p.Node != self {
			continue
		}
		if !filepath.IsAbs(p.Path) {
			return nil, fmt.Errorf("the path %.200q is not absolute", p.Path)
		}
		own = append(own, Part{Label: p.Label, Node: p.Node, Path: p.Path})
	}
	t := &tables{meta: graph.Meta{Format: s.Format, Vertices: s.Vertices, Features: s.Width, Edges: 1 << 48}, share: true}
	t.ids = &idMap{ints: intids.Identity(s.Vertices)}
	if len(own) == 0 {
		return t, nil
	}
	var err error
	if t.set, err = joinParts(ctx, own, s.Format, memory); err != nil {
		return nil, errors.Join(err, t.set.close())
	}
	if f := t.set[featuresTable]; f != nil && f.about().width != s.Width || t.set[edgesTable].about().width > 0 {
		return nil, errors.Join(t.changed(edgesTable), t.set.close())
	}
	return t, nil
}
