package triples

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A Graph is a folder of triples that has been read.
type Graph struct {
	source.Assembled
	// edges are in the order of their numbers, and as many of the same number as ends says: up to
	// those of number n end at ends[n].
	edges []edge
	ends  []int
	ids   graph.Strings
}

// edge is one that leads from a source to a target.
type edge struct{ source, target uint32 }

// IDs implements graph.Source.
func (g *Graph) IDs() graph.IDs { return graph.IDs{Strings: &g.ids} }

// graph makes a source of what was read.
func (r *reader) graph() (*Graph, error) {
	if len(r.of[graph.Train]) == 0 {
		return nil, fmt.Errorf("%s has no triples for training: check that train.txt is not empty", files.Show(r.folder))
	}
	if err := r.order(); err != nil {
		return nil, err
	}
	relations, place := r.sorted()
	edges := 2 * len(r.of[graph.Train])
	given := [3]uint64{uint64(len(r.of[graph.Train])), uint64(len(r.of[graph.Validation])), uint64(len(r.of[graph.Test]))}
	for _, part := range []graph.Mark{graph.Validation, graph.Test} {
		edges += len(r.of[part])
	}
	if err := r.memory.Grow(0, 8*uint64(edges)); err != nil {
		return nil, err
	}
	vertices := r.entities.count()
	t := &graph.Types{
		Vertices: []graph.VertexType{{Name: entity, Vertices: uint64(vertices), Features: vertices}},
		Given:    &given,
	}
	for _, name := range relations {
		t.Relations = append(t.Relations, graph.Relation{Source: entity, Name: name, Target: entity})
	}
	for _, of := range r.of[graph.Train] {
		t.Relations[place[of.relation]].Edges++
	}
	g := &Graph{ids: r.entities.all}
	g.arrange(r, place)
	g.Info = graph.Meta{
		Format: Format, Vertices: uint32(vertices), Edges: uint64(len(g.edges)), Weighted: true,
		Features: vertices, Sparse: true, NonZeros: uint64(vertices), Types: t,
	}
	g.ReadEdges, g.ReadFeatures = g.each, g.units
	g.Remarks = append(r.notes, fmt.Sprintf("Each of the %d entities has a feature of its own, as the triples have none.", vertices))
	if n := r.unseen(); n > 0 {
		g.Remarks = append(g.Remarks, fmt.Sprintf("%d of the %d entities are in no triple for training, so that nothing is learnt of them.", n, vertices))
	}
	return g, nil
}

// order returns an error if columns seem to be relation, head and tail, as some collections have
// them: all that stands in the second column is a tail somewhere, and nothing in the first is.
func (r *reader) order() error {
	tail := make([]bool, r.entities.count())
	for _, of := range r.of {
		for _, t := range of {
			tail[t.tail] = true
		}
	}
	for _, of := range r.of {
		for _, t := range of {
			if tail[t.head] {
				return nil
			}
		}
	}
	for i := range r.relations.count() {
		if v, known := r.entities.at[r.relations.name(i)]; !known || !tail[v] {
			return nil
		}
	}
	return fmt.Errorf("the second column of %s holds names of the third, and the first holds others, as if columns were relation, head and tail: put them in the order head, relation, tail", files.Show(r.folder))
}

// sorted returns the names of the relations in their order, and the place there of each number.
func (r *reader) sorted() (relations []string, place []int) {
	for i := range r.relations.count() {
		relations = append(relations, r.relations.name(i))
	}
	numbers := make([]int, len(relations))
	for i := range numbers {
		numbers[i] = i
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(relations[a], relations[b]) })
	place = make([]int, len(relations))
	for at, n := range numbers {
		place[n] = at
	}
	slices.Sort(relations)
	return relations, place
}

// unseen counts entities that are in no triple for training.
func (r *reader) unseen() int {
	n := r.entities.count()
	seen := make([]bool, n)
	for _, t := range r.of[graph.Train] {
		for _, v := range [2]uint32{t.head, t.tail} {
			if !seen[v] {
				seen[v] = true
				n--
			}
		}
	}
	return n
}

// arrange makes edges of triples, in the order of their numbers. Those with the same number keep
// the order of the files.
func (g *Graph) arrange(r *reader, place []int) {
	relations := len(place)
	number := func(t triple, part int, reversed bool) int {
		return graph.TripleNumber(place[t.relation], relations, graph.Mark(part), reversed)
	}
	t := graph.Types{Relations: make([]graph.Relation, relations), Given: new([3]uint64)}
	g.ends = make([]int, t.Numbers())
	r.each(func(t triple, part int, reversed bool) { g.ends[number(t, part, reversed)]++ })
	at := 0
	for i, n := range g.ends {
		g.ends[i] = at // where the next edge of this number lies
		at += n
	}
	g.edges = make([]edge, at)
	r.each(func(t triple, part int, reversed bool) {
		next := &g.ends[number(t, part, reversed)]
		if e := (edge{t.head, t.tail}); reversed {
			g.edges[*next] = edge{e.target, e.source}
		} else {
			g.edges[*next] = e
		}
		*next++
	})
}

// each passes all triples to a function, those for training in both directions.
func (r *reader) each(of func(t triple, part int, reversed bool)) {
	for part, all := range r.of {
		for _, t := range all {
			if of(t, part, false); graph.Mark(part) == graph.Train {
				of(t, part, true)
			}
		}
	}
}

// each yields the edges number by number, their numbers as their weights.
func (g *Graph) each(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	var b graph.EdgeBatch
	number := 0
	for at := 0; at < len(g.edges); {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b.Src, b.Dst, b.Weights = b.Src[:0], b.Dst[:0], b.Weights[:0]
		for end := min(len(g.edges), at+source.EdgeBatch); at < end; at++ {
			for at >= g.ends[number] {
				number++
			}
			b.Src, b.Dst, b.Weights = append(b.Src, g.edges[at].source), append(b.Dst, g.edges[at].target), append(b.Weights, float32(number))
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// units yields a row for each vertex with a one in its own column.
func (g *Graph) units(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	b := graph.FeatureBatch{}
	for at := uint32(0); at < g.Info.Vertices; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b.First, b.Indptr, b.Indices, b.Values = at, append(b.Indptr[:0], 0), b.Indices[:0], b.Values[:0]
		for end := min(g.Info.Vertices, at+source.EdgeBatch); at < end; at++ {
			b.Indices, b.Values = append(b.Indices, at), append(b.Values, 1)
			b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}
