package forecast

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Shape is what is published of a graph. Edges of such a graph are made up where they
// are looked at, so it needs no memory.
type Shape struct {
	Name     string
	Vertices uint64
	Edges    uint64 // stored: both directions
	Features int
	Classes  int
	Training uint64
	Source   string // of these numbers
}

// Shapes lists the graphs that are known by their shape.
func Shapes() []Shape {
	const ogb = "Hu et al., Open Graph Benchmark, 2020"
	return []Shape{
		{"arxiv", 169_343, 2_332_486, 128, 40, 90_941, ogb},
		{"reddit", 232_965, 114_615_892, 602, 41, 153_431, "Hamilton et al., GraphSAGE, 2017"},
		{"products", 2_449_029, 123_718_280, 100, 47, 196_615, ogb},
		{"papers100m", 111_059_956, 3_231_371_744, 128, 172, 1_207_179, ogb},
		{"mag240m-papers", 121_751_666, 2_595_497_852, 768, 153, 1_112_392, "Hu et al., OGB-LSC, 2021"},
	}
}

// ShapeOf returns the shape with a name.
func ShapeOf(name string) (Shape, error) {
	var names []string
	for _, s := range Shapes() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Shape{}, fmt.Errorf("there is no preset %q: choose one of %s", name, strings.Join(names, ", "))
}

// What is not published of a shape, and assumed of all of them.
const (
	// Inside is the share of edges that stay in their community, and Community how many
	// vertices one has. They decide how well a graph can be cut.
	Inside    = 0.8
	Community = 16_384
	// spread is the standard deviation of the logarithm of degrees.
	spread = 1.0
	// ShapeShards is how many shards such a graph has.
	ShapeShards = 1024
)

// Graph returns a graph of this shape. It depends on the seed alone.
func (s Shape) Graph(seed uint64) (*Graph, error) {
	if s.Vertices > math.MaxInt32 {
		return nil, fmt.Errorf("a graph of %d vertices is too large to be forecast", s.Vertices)
	}
	g := &Graph{
		About: dataset.About{
			Vertices: s.Vertices, Edges: s.Edges, Features: s.Features, Classes: s.Classes, Splits: []graph.SplitInfo{{Train: s.Training}},
		},
		Columns: s.Features, Far: &madeUp{vertices: s.Vertices, mean: float64(s.Edges) / float64(s.Vertices), key: keyed.New(seed, keyed.Neighbor)}, valued: true,
	}
	var shards []*graph.Shard
	var summaries []*sample.Summary
	for i := range uint64(ShapeShards) {
		first, end := s.Vertices*i/ShapeShards, s.Vertices*(i+1)/ShapeShards
		n := int(end - first)
		shards = append(shards, &graph.Shard{
			Number: int(i), Shards: ShapeShards, First: uint32(first), Vertices: n, Total: uint32(s.Vertices), Features: s.Features, Classes: s.Classes, DType: graph.F32,
		})
		edges := int64(s.Edges) * int64(n) / int64(s.Vertices)
		summaries = append(summaries, &sample.Summary{Edges: edges})
		g.Firsts = append(g.Firsts, uint32(first))
		g.Sizes = append(g.Sizes, graph.SkeletonSize{Vertices: int64(n), Edges: edges, Splits: 1, Labels: true})
	}
	g.Firsts = append(g.Firsts, uint32(s.Vertices))
	var err error
	if g.Topology, err = sample.NewPartial(shards, summaries); err != nil {
		return nil, err
	}
	draws := keyed.New(seed, keyed.Order).Draws()
	for i := range s.Training { // spread over the graph, each in a place of its own
		first, end := s.Vertices*i/s.Training, s.Vertices*(i+1)/s.Training
		g.Training = append(g.Training, uint32(first+draws.Below(end-first)))
	}
	g.costs = func([]int) []uint64 { return nil }
	g.row = func(wire string) (float64, error) {
		if wire == "bf16" {
			return 2 * float64(s.Features), nil
		}
		return 4 * float64(s.Features), nil
	}
	const table = 1 << 16 // rows that stand for all
	rows := make([]float32, table*s.Features)
	for i := range rows {
		rows[i] = float32(draws.Float64())
	}
	var places []uint32
	g.input = func(c *clock, vertices []uint32) nn.Input {
		places = places[:0]
		for _, v := range vertices {
			places = append(places, v*0x9e3779b1>>16)
		}
		in := nn.Input{Vertices: vertices, Dense: c.rows.Alloc(c.worker.Type(), len(vertices), s.Features)}
		c.worker.Gather(in.Dense, []tensor.Part{{X: tensor.OverF32(table, s.Features, rows)}}, places)
		return in
	}
	g.labels = func(to []int32, vertices []uint32) []int32 {
		for _, v := range vertices {
			to = append(to, int32(v%uint32(s.Classes)))
		}
		return to
	}
	return g, nil
}

// madeUp draws rows of a graph whose degrees are log-normal and whose edges stay in their
// community with a probability. It implements sample.Far.
type madeUp struct {
	vertices uint64
	mean     float64
	key      keyed.Key
	// targets have edges, from some sources; nil: all. See Graph.Confine.
	targets, sources func(v uint32) bool
	seen             []uint32 // sources of a row
}

// Draw implements sample.Far.
func (m *madeUp) Draw(_ context.Context, epoch, step uint64, hop, fanout int, vertices []uint32, to *sample.Drawn) error {
	to.Degrees, to.Sources, to.Weights = to.Degrees[:0], to.Sources[:0], nil
	to.Indptr = append(to.Indptr[:0], 0)
	drawn := m.key.With(epoch).With(step).With(uint64(hop))
	for _, v := range vertices {
		own := m.key.With(uint64(v)).Draws()
		degree := m.degree(&own)
		if m.targets != nil && !m.targets(v) {
			to.Degrees, to.Indptr = append(to.Degrees, degree), append(to.Indptr, int64(len(to.Sources)))
			continue
		}
		of := drawn.With(uint64(v)).Draws()
		if m.sources != nil {
			m.some(to, v, degree, fanout, &of)
			continue
		}
		n := sample.Kept(degree, fanout)
		for i := range n {
			e := uint64(i)
			if n < degree {
				e = of.Below(uint64(degree)) // which edge; now and then the same twice
			}
			to.Sources = append(to.Sources, int32(m.source(v, e)))
		}
		to.Degrees = append(to.Degrees, degree)
		to.Indptr = append(to.Indptr, int64(len(to.Sources)))
	}
	return nil
}

// some draws a row from the sources that are seen.
func (m *madeUp) some(to *sample.Drawn, v uint32, degree int32, fanout int, of *keyed.Sequence) {
	m.seen = m.seen[:0]
	for e := range degree {
		if u := m.source(v, uint64(e)); m.sources(u) {
			m.seen = append(m.seen, u)
		}
	}
	there := int32(len(m.seen))
	n := sample.Kept(there, fanout)
	for i := range n {
		e := uint64(i)
		if n < there {
			e = of.Below(uint64(there))
		}
		to.Sources = append(to.Sources, int32(m.seen[e]))
	}
	to.Degrees, to.Indptr = append(to.Degrees, degree), append(to.Indptr, int64(len(to.Sources)))
}

// degree returns a vertex's number of edges.
func (m *madeUp) degree(s *keyed.Sequence) int32 {
	// Box and Muller's normal number; the mean of a log-normal one is exp(spread^2 / 2).
	u, w := 1-s.Float64(), s.Float64()
	normal := math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*w)
	x := m.mean * math.Exp(spread*normal-spread*spread/2)
	n := math.Floor(x)
	if s.Float64() < x-n {
		n++
	}
	return int32(min(n, float64(m.vertices)/2))
}

// source returns the source of an edge of a vertex, which depends on nothing else.
func (m *madeUp) source(v uint32, edge uint64) uint32 {
	s := m.key.With(uint64(v)).With(edge + 1).Draws()
	if s.Float64() >= Inside {
		return uint32(s.Below(m.vertices))
	}
	first := uint64(v) / Community * Community
	return uint32(first + s.Below(min(Community, m.vertices-first)))
}
