package generate

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// typedGraph is a graph with types that is generated while it is read. Vertices of each type are
// divided into communities, as many as there are of the learnt type or as there are vertices, and
// communities of unlike types correspond in their order. An edge stays in its community by the
// share of its relation, and otherwise leads anywhere. So each relation says something of the
// classes, which are those of communities of the learnt type.
//
// Types without features have what imported ones have: a column of ones.
type typedGraph struct {
	meta      graph.Meta
	types     []typedVertices
	relations []typedEdges
	learnt    int // the type with features and classes
	features  features
	labels    []int32
	splits    [][]graph.Mark
	ids       graph.Strings
	notes     []string
	mirrored  bool
}

var _ graph.Source = (*typedGraph)(nil)

// typedVertices are the vertices of one type.
type typedVertices struct {
	graph.VertexType
	first uint32 // in the source
	ids   permutation
	towns *communities
}

// typedEdges draws the edges of one relation.
type typedEdges struct {
	graph.Relation
	source, target *typedVertices
	key            uint64
	inside         float64
}

// of separates what is drawn for one type or relation from the same for others.
func of(key uint64, number int) uint64 { return mix(key ^ mix(uint64(number)+golden)) }

func newTyped(shape *typedShape, seed uint64, scale float64) (*typedGraph, error) {
	vertices, edges, err := shape.scaled(scale)
	if err != nil {
		return nil, err
	}
	g := &typedGraph{learnt: shape.learnt, types: make([]typedVertices, len(shape.types)), meta: graph.Meta{
		Format: "sbm", Weighted: true, Sparse: true, Classes: shape.classes, Types: &graph.Types{},
	}}
	learnt := vertices[shape.learnt]
	towns := max(shape.classes, int(learnt/usualCommunity))
	for i, t := range shape.types {
		n := vertices[i]
		one := &g.types[i]
		*one = typedVertices{
			VertexType: graph.VertexType{Name: t.name, Vertices: uint64(n), First: g.meta.Features, Features: 1, Bare: true},
			first:      g.meta.Vertices,
			ids:        newPermutation(uint64(n), of(key(seed, forIDs), i)),
			towns:      newCommunities(Options{Vertices: n, Communities: min(towns, int(n)), Classes: shape.classes, Seed: of(seed, i)}),
		}
		if i == shape.learnt {
			one.Features, one.Bare = shape.features, false
		}
		g.meta.Vertices += n
		g.meta.Features += one.Features
		g.meta.NonZeros += uint64(n) * uint64(one.Features)
	}
	for i, r := range shape.relations {
		source, target := &g.types[r.source], &g.types[r.target]
		g.relations = append(g.relations, typedEdges{
			Relation: graph.Relation{Source: source.Name, Name: r.name, Target: target.Name, Edges: edges[i]},
			source:   source, target: target, key: of(key(seed, forEdges), i), inside: r.inside,
		})
	}
	g.describe()
	g.learn(shape, seed)
	g.name()
	g.notes = []string{
		fmt.Sprintf("The graph is synthetic, shaped like %s; its accuracy says nothing about the real graph.", shape.real),
		fmt.Sprintf("One in %.0f vertices of the type %s has a class drawn at random, of which its neighbours say nothing.", 1/(1-shape.keeps), shape.types[shape.learnt].name),
		"Edges are drawn one by one, so some are drawn twice or more and count once when they are merged.",
	}
	return g, nil
}

// describe sets the types of the metadata, and counts the edges.
func (g *typedGraph) describe() {
	t := &graph.Types{}
	for i := range g.types {
		t.Vertices = append(t.Vertices, g.types[i].VertexType)
	}
	g.meta.Edges = 0
	for i := range g.relations {
		r := g.relations[i].Relation
		if g.mirrored && r.Source == r.Target {
			r.Edges *= 2
		}
		t.Relations = append(t.Relations, r)
		g.meta.Edges += r.Edges
	}
	for i := range g.relations {
		if r := g.relations[i].Relation; g.mirrored && r.Source != r.Target {
			reverse, _ := r.Back() // Mirror has seen the error
			t.Relations = append(t.Relations, reverse)
			g.meta.Edges += r.Edges
		}
	}
	g.meta.Types = t
}

// Mirror adds each edge in the other direction: under the same relation if it leads between
// vertices of one type, else under a relation of its own, whose name begins with rev-, as in
// graphs that are imported.
func (g *typedGraph) Mirror() error {
	for i := range g.relations {
		if _, err := g.relations[i].Back(); err != nil {
			return err
		}
	}
	g.mirrored = true
	g.describe()
	return nil
}

// learn draws the classes and the split.
func (g *typedGraph) learn(shape *typedShape, seed uint64) {
	t := &g.types[g.learnt]
	g.labels = make([]int32, g.meta.Vertices)
	marks := make([]graph.Mark, g.meta.Vertices)
	for v := range g.labels {
		g.labels[v] = graph.NoLabel
	}
	own := g.labels[t.first:][:t.Vertices]
	community := func(v uint64) int { return t.towns.of(t.ids.from(v)) }
	labels := key(seed, forLabels)
	inParallel(len(own), func(v int) {
		random := at(labels, uint64(v))
		if random.unit() < shape.keeps {
			own[v] = int32(t.towns.class(community(uint64(v))))
		} else {
			own[v] = int32(random.below(uint64(shape.classes)))
		}
	})
	copy(marks[t.first:], split(Options{Vertices: uint32(t.Vertices), Seed: seed}, shape.shape))
	g.splits = [][]graph.Mark{marks}
	g.features = features{
		columns: t.Features, noise: key(seed, forNoise), prototypes: key(seed, forPrototypes), parts: key(seed, forCommunityParts),
		class: func(v uint64) int { return int(own[v]) }, community: community,
	}
}

// name names the vertices TYPE/NUMBER.
func (g *typedGraph) name() {
	room := 0
	for i := range g.types {
		room += int(g.types[i].Vertices) * (len(g.types[i].Name) + 1 + len(strconv.FormatUint(g.types[i].Vertices, 10)))
	}
	g.ids = graph.Strings{Offsets: make([]int64, 1, g.meta.Vertices+1), Bytes: make([]byte, 0, room)}
	for i := range g.types {
		for v := range g.types[i].Vertices {
			g.ids.Bytes = strconv.AppendUint(append(append(g.ids.Bytes, g.types[i].Name...), '/'), v, 10)
			g.ids.Offsets = append(g.ids.Offsets, int64(len(g.ids.Bytes)))
		}
	}
}

func (g *typedGraph) Meta() graph.Meta       { return g.meta }
func (g *typedGraph) Labels() []int32        { return g.labels }
func (g *typedGraph) Targets() graph.Columns { return graph.Columns{} }
func (g *typedGraph) Splits() [][]graph.Mark { return g.splits }
func (g *typedGraph) IDs() graph.IDs         { return graph.IDs{Strings: &g.ids} }
func (g *typedGraph) Notes() []string        { return g.notes }
func (g *typedGraph) Close() error           { return nil }

// Edges generates the edges relation by relation, their relations as their weights.
func (g *typedGraph) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	for i := range g.relations {
		r := &g.relations[i]
		both := g.mirrored && r.source == r.target
		err := r.each(ctx, i, func(b graph.EdgeBatch) error {
			if err := yield(b); err != nil || !both {
				return err
			}
			return yield(graph.EdgeBatch{Src: b.Dst, Dst: b.Src, Weights: b.Weights})
		})
		if err != nil {
			return err
		}
	}
	back := len(g.relations)
	for i := range g.relations {
		r := &g.relations[i]
		if !g.mirrored || r.source == r.target {
			continue
		}
		err := r.each(ctx, back, func(b graph.EdgeBatch) error {
			return yield(graph.EdgeBatch{Src: b.Dst, Dst: b.Src, Weights: b.Weights})
		})
		if err != nil {
			return err
		}
		back++
	}
	return nil
}

// each yields the edges under the number of a relation.
func (r *typedEdges) each(ctx context.Context, number int, yield func(graph.EdgeBatch) error) error {
	buffer := func() graph.EdgeBatch {
		n := min(batchEdges, r.Relation.Edges)
		b := graph.EdgeBatch{Src: make([]uint32, n), Dst: make([]uint32, n), Weights: make([]float32, n)}
		for i := range b.Weights {
			b.Weights[i] = float32(number)
		}
		return b
	}
	fill := func(i uint64, b graph.EdgeBatch) graph.EdgeBatch {
		first := i * batchEdges
		n := min(batchEdges, r.Relation.Edges-first)
		b.Src, b.Dst, b.Weights = b.Src[:n], b.Dst[:n], b.Weights[:n]
		for e := range b.Src {
			from, to := r.edge(first + uint64(e))
			b.Src[e], b.Dst[e] = r.source.first+uint32(r.source.ids.of(from)), r.target.first+uint32(r.target.ids.of(to))
		}
		return b
	}
	return inOrder(ctx, (r.Relation.Edges+batchEdges-1)/batchEdges, buffer, fill, yield)
}

// edge returns the positions of an edge's ends.
func (r *typedEdges) edge(index uint64) (from, to uint64) {
	random := at(r.key, index)
	for range attempts {
		home := r.source.towns.of(random.below(r.source.Vertices))
		there := r.target.towns.beside(home, r.source.towns, &random)
		if random.unit() >= r.inside {
			there = r.target.towns.of(random.below(r.target.Vertices))
		}
		from, to = r.source.towns.vertex(home, random.unit()), r.target.towns.vertex(there, random.unit())
		if r.source != r.target || from != to {
			return from, to
		}
	}
	from = random.below(r.source.Vertices)
	return from, (from + 1) % r.target.Vertices
}

// beside returns the community that corresponds to the i-th of others: one of several if there
// are fewer of those.
func (c *communities) beside(i int, others *communities, random *sequence) int {
	own, theirs := uint64(c.count()), uint64(others.count())
	return int((uint64(i)*own + random.below(own)) / theirs)
}

func (c *communities) count() int { return len(c.roots) }

// typedRows is a batch of rows of the learnt type, whose columns are all the same.
type typedRows struct {
	graph.FeatureBatch
	indptr  []int64
	indices []uint32
	values  []float32
}

// Features yields the rows of all types as sparse ones, each in the columns of its type.
func (g *typedGraph) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	for i := range g.types {
		t := &g.types[i]
		columns, vertices := uint64(t.Features), t.Vertices
		rows := min(max(1, batchFloats/columns), vertices)
		buffer := func() *typedRows {
			b := &typedRows{indptr: make([]int64, rows+1), indices: make([]uint32, rows*columns), values: make([]float32, rows*columns)}
			for r := range b.indptr {
				b.indptr[r] = int64(r) * int64(columns)
			}
			for e := range b.indices {
				b.indices[e] = uint32(t.First + e%t.Features)
			}
			return b
		}
		fill := func(batch uint64, b *typedRows) *typedRows {
			first := batch * rows
			n := min(rows, vertices-first)
			b.FeatureBatch = graph.FeatureBatch{First: t.first + uint32(first), Indptr: b.indptr[:n+1], Indices: b.indices[:n*columns], Values: b.values[:n*columns]}
			if i == g.learnt {
				g.features.fill(first, b.Values)
				return b
			}
			for e := range b.Values {
				b.Values[e] = 1
			}
			return b
		}
		err := inOrder(ctx, (vertices+rows-1)/rows, buffer, fill, func(b *typedRows) error { return yield(b.FeatureBatch) })
		if err != nil {
			return err
		}
	}
	return nil
}

// typedShape is the size of a real graph with types.
type typedShape struct {
	shape
	name      string
	types     []typeShape
	relations []relationShape
	learnt    int // the type with features and classes
	features  int
	classes   int
	keeps     float64 // share of its vertices that have their community's class
}

type typeShape struct {
	name     string
	vertices uint64
}

// A relationShape leads from one type to another, by their places.
type relationShape struct {
	source int
	name   string
	target int
	edges  uint64
	inside float64 // share of its edges that stay in their community
}

// scaled returns the numbers of vertices of types and of edges of relations. Each type has one
// vertex at least.
func (s *typedShape) scaled(by float64) (vertices []uint32, edges []uint64, err error) {
	if by == 0 {
		by = 1
	}
	if !(by > 0) || math.IsInf(by, 1) {
		return nil, nil, fmt.Errorf("the graph can't be scaled by %v: the scale is a number above 0", by)
	}
	all, drawn := 0.0, 0.0
	for _, t := range s.types {
		all += max(1, math.Round(float64(t.vertices)*by))
	}
	for _, r := range s.relations {
		drawn += math.Round(float64(r.edges) * by)
	}
	learnt := math.Round(float64(s.types[s.learnt].vertices) * by)
	switch {
	case all > graph.MaxVertices:
		return nil, nil, fmt.Errorf("scaled by %v the graph would have %.0f vertices, and %d is the most there can be: choose a smaller scale", by, all, graph.MaxVertices)
	case drawn > float64(maxEdges):
		return nil, nil, fmt.Errorf("scaled by %v the graph would have %.0f edges, and %d is the most that can be made up: choose a smaller scale", by, drawn, maxEdges)
	case learnt < float64(s.classes):
		return nil, nil, fmt.Errorf("scaled by %v the graph would have %.0f vertices of the type %s, and they have %d classes: choose a larger scale", by, learnt, s.types[s.learnt].name, s.classes)
	}
	for _, t := range s.types {
		vertices = append(vertices, uint32(max(1, math.Round(float64(t.vertices)*by))))
	}
	for _, r := range s.relations {
		edges = append(edges, uint64(math.Round(float64(r.edges)*by)))
	}
	return vertices, edges, nil
}
