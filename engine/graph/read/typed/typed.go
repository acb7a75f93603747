// Package typed reads graphs whose vertices are of several types and whose edges are of several
// relations, from a folder with nodes/TYPE.csv and edges/SOURCE-RELATION-TARGET.csv, or the same in
// another format of tables, or in NumPy's archives, each file in its own. The same graph may be two
// tables with columns of types and of relations.
//
// Vertices of all types have one id space: those of one type follow one another, types in the order
// of their names. Each type has columns of features of its own, so that the first product of a model
// is a projection of each type, and types may be unlike. A type without features has a column of
// ones.
package typed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/npz"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// Format is how the format is called.
const Format = "typed"

// The folders of a typed graph.
const (
	nodesFolder = "nodes"
	edgesFolder = "edges"
)

// IsFolder reports whether a folder that holds these is one of a typed graph.
func IsFolder(ctx context.Context, path string, names []string) bool {
	for _, name := range []string{nodesFolder, edgesFolder} {
		if !slices.Contains(names, name) {
			return false
		}
		if what, err := files.Look(ctx, files.Join(path, name)); err != nil || what != files.Folder {
			return false
		}
	}
	return true
}

// A vertexType is one file of nodes.
type vertexType struct {
	graph.Source
	name  string
	file  string
	first uint32 // of its vertices
	at    int    // of its columns
}

// bare reports whether it has no features.
func (t *vertexType) bare() bool { return t.Meta().Features == 0 }

// width returns how many columns its features have.
func (t *vertexType) width() int { return max(1, t.Meta().Features) }

// A relation is one file of edges.
type relation struct {
	source, target *vertexType
	name           string
	edges          uint64
	read           func(ctx context.Context, yield func(graph.EdgeBatch) error) error
	close          func() error
}

// A Graph is a folder of a typed graph.
type Graph struct {
	meta      graph.Meta
	types     []*vertexType
	relations []*relation
	labels    []int32
	columns   graph.Columns
	splits    [][]graph.Mark
	ids       graph.Strings
	notes     []string
	mirrored  bool
	memory    source.Memory
}

var _ graph.Source = (*Graph)(nil)

// Open opens a folder.
func Open(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	g := &Graph{memory: source.Memory{Limit: o.Memory}}
	if err := g.open(ctx, path, o); err != nil {
		if errors.Is(err, source.ErrMemory) {
			err = fmt.Errorf("the names, labels and splits of %s do not fit in %s of memory: raise {dataset.memory}", files.Show(path), source.Size(o.Memory))
		}
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Graph) open(ctx context.Context, path string, o source.Options) error {
	if err := g.openNodes(ctx, files.Join(path, nodesFolder), o); err != nil {
		return err
	}
	if err := g.openEdges(ctx, files.Join(path, edgesFolder), o); err != nil {
		return err
	}
	if all, err := files.List(ctx, path); err == nil {
		ours := func(name string) bool { return name == nodesFolder || name == edgesFolder }
		if note := source.NotReadOf(files.Base(path), all, ours); note != "" {
			g.notes = append(g.notes, note)
		}
	}
	if err := g.number(); err != nil {
		return err
	}
	if err := g.learn(); err != nil {
		return err
	}
	g.describe()
	return nil
}

// stem returns a file's name without its ending.
func stem(name string) (of string, archive, ok bool) {
	if lower := strings.ToLower(name); strings.HasSuffix(lower, ".npz") {
		return name[:len(name)-len(".npz")], true, true
	}
	of, ok = tabular.IsTable(name)
	return of, false, ok
}

// list returns the files of a folder, and notes what is left out.
func (g *Graph) list(ctx context.Context, folder string) (names []string, err error) {
	all, err := files.List(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s: a typed graph has the folders nodes and edges", files.Show(folder))
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", files.Show(folder), err)
	}
	for _, name := range all {
		if _, _, ok := stem(name); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds neither tables nor archives: put files such as paper.csv into nodes, and paper-cites-paper.csv into edges", files.Show(folder))
	}
	if note := source.NotReadOf(files.Base(folder), all, func(name string) bool { return slices.Contains(names, name) }); note != "" {
		g.notes = append(g.notes, note)
	}
	slices.Sort(names)
	return names, nil
}

func (g *Graph) openNodes(ctx context.Context, folder string, o source.Options) error {
	names, err := g.list(ctx, folder)
	if err != nil {
		return err
	}
	if len(names) > graph.MaxTypes {
		return fmt.Errorf("%s has %d files, and a graph has at most %d types: leave some out", files.Show(folder), len(names), graph.MaxTypes)
	}
	vertices, columns := uint64(0), 0
	for _, name := range names {
		t := &vertexType{file: nodesFolder + "/" + name, first: uint32(vertices), at: columns}
		var archive bool
		t.name, archive, _ = stem(name)
		if err := graph.CheckTypeName(t.name); err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
		if slices.ContainsFunc(g.types, func(other *vertexType) bool { return other.name == t.name }) {
			return fmt.Errorf("%s holds two files of the type %s: leave one of them", files.Show(folder), t.name)
		}
		open := tabular.OpenNodes
		if archive {
			open = npz.OpenNodes
		}
		from := o
		if from.Memory = g.left(); o.Memory == 0 {
			from.Memory = 0
		}
		src, held, err := open(ctx, files.Join(folder, name), from)
		if err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
		t.Source = src
		g.types = append(g.types, t)
		if err := g.memory.Grow(0, held); err != nil {
			return err
		}
		if vertices += uint64(src.Meta().Vertices); vertices > graph.MaxVertices {
			return fmt.Errorf("the types have %d vertices up to %s, and at most %d can be taken: cut the graph down", vertices, t.name, graph.MaxVertices)
		}
		if columns += t.width(); columns > source.MaxSparseFeatures {
			return fmt.Errorf("the types have %d columns of features up to %s, and at most %d can be taken: make the features fewer", columns, t.name, source.MaxSparseFeatures)
		}
	}
	g.meta = graph.Meta{Format: Format, Vertices: uint32(vertices), Features: columns, Sparse: true, Weighted: true, Types: &graph.Types{}}
	return nil
}

// left returns the memory that may still be taken, at least a byte, since 0 means no bound.
func (g *Graph) left() uint64 {
	return max(1, g.memory.Limit-min(g.memory.Limit, g.memory.Held()))
}

func (g *Graph) openEdges(ctx context.Context, folder string, o source.Options) error {
	names, err := g.list(ctx, folder)
	if err != nil {
		return err
	}
	if len(names) > graph.MaxRelations/2 {
		return fmt.Errorf("%s has %d files, and a graph has at most %d relations: leave some out", files.Show(folder), len(names), graph.MaxRelations/2)
	}
	for _, name := range names {
		file := edgesFolder + "/" + name
		of, archive, _ := stem(name)
		r, err := g.ends(of, file)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(g.relations, func(other *relation) bool {
			return other.source == r.source && other.target == r.target && other.name == r.name
		}) {
			return fmt.Errorf("%s holds two files of the relation %s: leave one of them", files.Show(folder), of)
		}
		g.relations = append(g.relations, r)
		path := files.Join(folder, name)
		if archive {
			err = g.archive(ctx, r, path, o)
		} else {
			err = g.table(ctx, r, path, file, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if g.meta.Edges += r.edges; g.meta.Edges > 1<<47 {
			return fmt.Errorf("%s: there are %d edges up to here, which are too many: cut the graph down", file, g.meta.Edges)
		}
	}
	return nil
}

// ends finds the types that a file of edges leads between. A name may have dashes of its own, as
// long as one way alone to take it apart gives two types.
func (g *Graph) ends(of, file string) (*relation, error) {
	var found []*relation
	for _, s := range g.types {
		for _, t := range g.types {
			rest, ok := strings.CutPrefix(of, s.name+"-")
			if !ok {
				continue
			}
			if name, ok := strings.CutSuffix(rest, "-"+t.name); ok && name != "" {
				found = append(found, &relation{source: s, target: t, name: name})
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s is not called SOURCE-RELATION-TARGET by two of the types %s: rename it, or add a file for the type that is missing to nodes", file, source.Listed(g.names()))
	case 1:
		if err := graph.CheckTypeName(found[0].name); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return found[0], nil
	}
	return nil, fmt.Errorf("%s can be taken apart in %d ways, such as from %s to %s and from %s to %s: rename the types so that only one is left", file, len(found), found[0].source.name, found[0].target.name, found[1].source.name, found[1].target.name)
}

func (g *Graph) names() (names []string) {
	for _, t := range g.types {
		names = append(names, t.name)
	}
	return names
}

func (g *Graph) table(ctx context.Context, r *relation, path, file string, o source.Options) error {
	links, err := tabular.OpenLinks(ctx, path, " of its type", o.Memory)
	if err != nil {
		return err
	}
	r.close = links.Close
	if links.Weighted() {
		g.notes = append(g.notes, fmt.Sprintf("%s: weights are not taken, as edges of a typed graph have a relation only.", file))
	}
	r.read = func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		return links.Read(ctx, r.source.Source, r.target.Source, yield)
	}
	r.edges, err = links.Count(ctx, r.source.Source, r.target.Source)
	return err
}

func (g *Graph) archive(ctx context.Context, r *relation, path string, o source.Options) error {
	for _, t := range []*vertexType{r.source, r.target} {
		if ids := t.IDs(); ids.Ints != nil || ids.Strings != nil {
			return fmt.Errorf("edge_index has the numbers of rows, and the ids in %s are not 0, 1, 2 and so on: give the edges as a table, or number the nodes", t.file)
		}
	}
	sources, targets := r.source.Meta().Vertices, r.target.Meta().Vertices
	links, err := npz.OpenLinks(ctx, path, max(sources, targets), o)
	if err != nil {
		return err
	}
	r.close, r.edges = links.Close, links.Info.Edges
	r.read = func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		return links.Edges(ctx, func(b graph.EdgeBatch) error {
			for i := range b.Src {
				if b.Src[i] >= sources || b.Dst[i] >= targets {
					return fmt.Errorf("edge_index has an edge from %d to %d, and there are %d vertices of %s and %d of %s: check that its first row holds sources", b.Src[i], b.Dst[i], sources, r.source.name, targets, r.target.name)
				}
			}
			return yield(graph.EdgeBatch{Src: b.Src, Dst: b.Dst})
		})
	}
	return nil
}
