package ogb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/typed"
)

// A graph with types has its tables in folders of raw/, node-feat/TYPE, node-label/TYPE and
// relations/SOURCE___RELATION___TARGET, and its splits in split/NAME/TYPE. Two lists name them.
const (
	ogbCounts   = "num-node-dict.csv.gz"     // names of types, and how many vertices each has
	ogbTriplets = "triplet-type-list.csv.gz" // source, relation and target of each relation
)

var errTypes = errors.New("the graph has types")

// types opens a graph with types, which are in the order of their names.
func (g *ogb) types(ctx context.Context) (graph.Source, error) {
	names, counts, err := g.counts(ctx)
	if err != nil {
		return nil, err
	}
	links, size, err := g.relations(ctx, names, counts)
	if err != nil {
		return nil, err
	}
	parts, types, all := make([]*ogb, len(names)), make([]typed.Type, len(names)), uint64(0)
	for i, name := range names {
		one := g.within(counts[i], map[string]string{ogbFeatures: "node-feat/" + name + "/", ogbLabels: "node-label/" + name + "/"})
		n, err := one.columns(ctx)
		if err != nil {
			return nil, err
		}
		size += n
		all += uint64(counts[i])
		parts[i], types[i] = one, typed.Type{Name: name, Source: &one.Assembled}
		g.Remarks = append(g.Remarks, one.Remarks...)
		one.Remarks = nil
	}
	if err := enough(ogbCounts, all, size); err != nil {
		return nil, err
	}
	for i, one := range parts { // marks take memory for each vertex
		if one.Classes == nil {
			continue
		}
		if err := one.readSplits(ctx, names[i]+"/"); err != nil {
			return nil, err
		}
	}
	joined, err := typed.Join(g.Info.Format, types, links, g.memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.folder, err)
	}
	parts[0].Closer = g.tree.close
	joined.Note(g.Remarks...)
	joined.Note("Edges were taken in the direction that they are listed in: {dataset.undirected} adds relations back.")
	return joined, nil
}

// enough returns an error unless raw files of so many bytes can be those of so many vertices.
func enough(name string, vertices, size uint64) error {
	const free, perByte = 1 << 20, 1024
	if vertices == 0 || vertices > free+perByte*size || vertices > graph.MaxVertices {
		return fmt.Errorf("%s: it says that there are %d vertices, and raw/ has %d bytes: copy the folder again", name, vertices, size)
	}
	return nil
}

// within returns a reader of tables that lie in these folders of raw/, for vertices of one type.
func (g *ogb) within(vertices uint32, in map[string]string) *ogb {
	one := &ogb{tree: g.tree, folder: g.folder, splits: g.splits, o: g.o, memory: g.memory, in: in}
	one.Info = graph.Meta{Format: g.Info.Format, Vertices: vertices}
	return one
}

// counts reads how many vertices each type has.
func (g *ogb) counts(ctx context.Context) (names []string, counts []uint32, err error) {
	var rows [][]string
	err = g.lines(ctx, "raw/"+ogbCounts, ogbCounts, source.MaxLine, func(_ uint64, text []byte) error {
		if len(rows) == 2 {
			return fmt.Errorf("%s has more than two lines, as if there were several graphs: import one of them", ogbCounts)
		}
		rows = append(rows, fields(text))
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case len(rows) < 2 || len(rows[0]) != len(rows[1]) || len(rows[0]) > graph.MaxTypes:
		return nil, nil, fmt.Errorf("%s is not a line of up to %d types and one of as many numbers: copy the folder again", ogbCounts, graph.MaxTypes)
	}
	of := map[string]uint32{}
	for i, name := range rows[0] {
		n, ok := source.ParseID([]byte(rows[1][i]))
		if !ok || n < 1 || n > graph.MaxVertices {
			return nil, nil, fmt.Errorf("%s: %.80q is no number of vertices of the type %.80q: copy the folder again", ogbCounts, rows[1][i], name)
		}
		if err := folderName(ogbCounts, name); err != nil {
			return nil, nil, err
		}
		if _, twice := of[name]; twice {
			return nil, nil, fmt.Errorf("%s names the type %s twice: copy the folder again", ogbCounts, name)
		}
		of[name] = uint32(n)
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		counts = append(counts, of[name])
	}
	return names, counts, nil
}

// folderName returns an error unless a type or relation may be called so and have a folder of that
// name.
func folderName(list, name string) error {
	if err := graph.CheckTypeName(name); err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	if strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%s: there can't be a folder called %.80q: copy the folder again", list, name)
	}
	return nil
}

// fields returns what stands between commas.
func fields(text []byte) (all []string) {
	for field := range bytes.SplitSeq(text, []byte{','}) {
		all = append(all, string(source.Trim(field)))
	}
	return all
}

// relations returns the edges of each relation, in the order of the names, and how large their
// files are.
func (g *ogb) relations(ctx context.Context, names []string, counts []uint32) (links []typed.Link, size uint64, err error) {
	var triplets [][]string
	err = g.lines(ctx, "raw/"+ogbTriplets, ogbTriplets, source.MaxLine, func(line uint64, text []byte) error {
		of := fields(text)
		if len(of) != 3 || len(triplets) == graph.MaxRelations/2 {
			return fmt.Errorf("%s, line %d: %s is not a source, a relation and a target, of up to %d: copy the folder again", ogbTriplets, line, source.Shorten(text), graph.MaxRelations/2)
		}
		for _, name := range of {
			if err := folderName(ogbTriplets, name); err != nil {
				return err
			}
		}
		triplets = append(triplets, of)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if len(triplets) == 0 {
		return nil, 0, fmt.Errorf("%s is empty: copy the folder again", ogbTriplets)
	}
	slices.SortFunc(triplets, slices.Compare)
	for i, of := range triplets {
		from, to := slices.Index(names, of[0]), slices.Index(names, of[2])
		switch {
		case from < 0 || to < 0:
			return nil, 0, fmt.Errorf("%s has a relation from %s to %s, and %s has not both types: copy the folder again", ogbTriplets, of[0], of[2], ogbCounts)
		case i > 0 && slices.Equal(of, triplets[i-1]):
			return nil, 0, fmt.Errorf("%s has the relation %s twice: copy the folder again", ogbTriplets, strings.Join(of, ","))
		}
		in := "relations/" + strings.Join(of, "___") + "/"
		one := g.within(counts[from], map[string]string{ogbEdges: in, ogbCount: in})
		one.targets = counts[to]
		if one.Info.Edges, err = one.number(ctx, ogbCount); err != nil {
			return nil, 0, err
		}
		n, err := one.size(ctx, ogbEdges)
		if err != nil {
			return nil, 0, err
		}
		size += n
		links = append(links, typed.Link{Relation: graph.Relation{Source: of[0], Name: of[1], Target: of[2], Edges: one.Info.Edges}, Read: one.readEdges})
	}
	return links, size, nil
}

// columns opens the features and reads the labels of a type, if there are some, and returns how
// large their files are.
func (g *ogb) columns(ctx context.Context) (size uint64, err error) {
	var unused []string
	for _, name := range []string{ogbFeatures, ogbLabels} {
		entries, err := g.tree.list(ctx, "raw/"+strings.TrimSuffix(g.in[name], "/"))
		if err != nil {
			return 0, fmt.Errorf("list raw/%s: %w", g.in[name], err)
		}
		for _, e := range entries {
			if e.name == name {
				g.there = append(g.there, name)
			} else if strings.HasSuffix(e.name, ".csv.gz") {
				unused = append(unused, g.in[name]+e.name)
			}
		}
	}
	if len(unused) > 0 {
		g.Remarks = append(g.Remarks, fmt.Sprintf("Not used of raw/: %s.", source.Listed(unused)))
	}
	for _, name := range g.there {
		n, err := g.size(ctx, name)
		if err != nil {
			return 0, err
		}
		size += n
	}
	if g.has(ogbFeatures) {
		if g.Info.Features, err = g.width(ctx, ogbFeatures, source.MaxDenseFeatures); err != nil {
			return 0, err
		}
		g.ReadFeatures = g.readFeatures
	}
	if g.has(ogbLabels) {
		err = g.readLabels(ctx)
	}
	return size, err
}

// size returns how many bytes a table has.
func (g *ogb) size(ctx context.Context, name string) (uint64, error) {
	n, err := g.tree.size(ctx, "raw/"+g.in[name]+name)
	if err != nil {
		return 0, fmt.Errorf("look at raw/%s: %w", g.in[name]+name, err)
	}
	return uint64(n), nil
}
