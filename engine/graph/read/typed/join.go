package typed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A Type is the vertices of one type, as a source of their own that has no edges.
type Type struct {
	Name   string
	Source graph.Source
}

// A Link is the edges of one relation. Their ends are numbers of vertices within their types.
type Link struct {
	graph.Relation
	Read func(ctx context.Context, yield func(graph.EdgeBatch) error) error
}

// Join returns the graph of types, in this order, and of relations between them, in a format that
// another package reads. It takes from the memory that the sources have left. The graph closes the
// sources; if Join fails, they stay open.
func Join(format string, types []Type, links []Link, memory *source.Memory) (*Graph, error) {
	g := &Graph{memory: *memory}
	vertices, columns := uint64(0), 0
	for _, t := range types {
		if slices.ContainsFunc(g.types, func(other *vertexType) bool { return other.name == t.Name }) {
			return nil, fmt.Errorf("the type %s occurs twice: name it once", t.Name)
		}
		if err := graph.CheckTypeName(t.Name); err != nil {
			return nil, err
		}
		one := &vertexType{Source: t.Source, name: t.Name, file: t.Name, first: uint32(vertices), at: columns}
		if vertices += uint64(t.Source.Meta().Vertices); vertices > graph.MaxVertices {
			return nil, fmt.Errorf("the types have %d vertices up to %s, and at most %d can be taken: cut the graph down", vertices, t.Name, graph.MaxVertices)
		}
		if columns += one.width(); columns > source.MaxSparseFeatures {
			return nil, fmt.Errorf("the types have %d columns of features up to %s, and at most %d can be taken: make the features fewer", columns, t.Name, source.MaxSparseFeatures)
		}
		g.types = append(g.types, one)
	}
	g.meta = graph.Meta{Format: format, Vertices: uint32(vertices), Features: columns, Sparse: true, Weighted: true, Types: &graph.Types{}}
	for _, l := range links {
		r := &relation{source: g.typeOf(l.Source), target: g.typeOf(l.Target), name: l.Name, edges: l.Edges, read: l.Read}
		if r.source == nil || r.target == nil {
			return nil, fmt.Errorf("the relation %s leads between types of which there are only %s", l.Relation, source.Listed(g.names()))
		}
		if g.meta.Edges += r.edges; g.meta.Edges > 1<<47 {
			return nil, errors.New("there are too many edges: cut the graph down")
		}
		g.relations = append(g.relations, r)
	}
	if err := g.number(); err != nil {
		return nil, err
	}
	if err := g.learn(); err != nil {
		return nil, err
	}
	g.describe()
	return g, nil
}

func (g *Graph) typeOf(name string) *vertexType {
	if i := slices.IndexFunc(g.types, func(t *vertexType) bool { return t.name == name }); i >= 0 {
		return g.types[i]
	}
	return nil
}

// Note adds remarks for the user.
func (g *Graph) Note(notes ...string) { g.notes = append(g.notes, notes...) }
