package forecast

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Graph is what forecasts need of a graph: of one that is here, or of one that is only
// known by its shape.
type Graph struct {
	About    dataset.About
	Columns  int // of features
	Sparse   bool
	Entries  float64 // of a vertex's sparse features, on average
	Weighted bool    // edges have weights
	Topology *sample.Topology
	Far      sample.Far // draws what the topology lacks; nil: it lacks nothing
	Training []uint32
	Firsts   []uint32 // of each shard, then the number of vertices
	Sizes    []graph.SkeletonSize

	// costs returns the relative costs of a seed vertex of each shard; nil: all the same.
	costs func(fanouts []int) []uint64
	reading
	linked
	// valued sets the values of blocks whose drawing made none.
	valued bool
}

// linked is the pairs that are learnt in place of targets, nil if they are not, and what they have made
// of memory.
type linked struct {
	pairs  *link.Pairs
	copied uint64
}

// reading is how what a graph says of vertices is read.
type reading struct {
	// row returns the mean bytes of a row of features in a form on the wire.
	row func(wire string) (float64, error)
	// input returns the features of vertices, in memory that the next call reuses.
	input func(c *clock, vertices []uint32) nn.Input
	// labels appends the labels of vertices.
	labels func(to []int32, vertices []uint32) []int32
}

// Of returns a graph that is here.
func Of(d *dataset.Graph) *Graph {
	g := &Graph{
		About: d.About, Columns: d.Features.Columns(), Sparse: d.Features.Sparse(), Entries: d.Entries, Topology: d.Topology,
		Training: d.Training, Firsts: dataset.Firsts(d.Shards), reading: reading{labels: d.TargetsOf},
		linked:   linked{d.Links, d.Copied},
		Weighted: slices.ContainsFunc(d.Shards, func(s *graph.Shard) bool { return s.Weights != nil }),
	}
	for _, s := range d.Shards {
		g.Sizes = append(g.Sizes, graph.SizeOf(s))
	}
	g.costs = func(fanouts []int) []uint64 {
		whole := &replica.Replica{Shards: d.Shards, Summaries: make([]*sample.Summary, len(d.Shards))}
		return whole.Costs(fanouts)
	}
	g.row = func(wire string) (float64, error) { return rowBytes(d.Features, wire) }
	g.input = func(c *clock, vertices []uint32) nn.Input {
		in := nn.Input{Vertices: vertices}
		if g.Sparse {
			d.Features.Fill(&c.sparse, vertices, true, nil)
			in.Sparse = &c.sparse.CSR
			return in
		}
		in.Dense = c.rows.Alloc(c.worker.Type(), len(vertices), g.Columns)
		d.Features.Dense(c.worker, c.spare, in.Dense, vertices, nil)
		return in
	}
	return g
}

// learning returns the subject with learnt rows of vertices beside features, or in place of them, none of which
// travels: gradients do, see Batched.
func (s *Subject) learning() *Subject {
	of, graph := *s, *s.Graph
	columns := s.Graph.Columns + s.Recipe.Embeddings
	graph.Columns, graph.Sparse = columns, false
	graph.row = func(string) (float64, error) { return 0, nil }
	graph.input = func(c *clock, vertices []uint32) nn.Input {
		x := c.rows.Alloc(c.worker.Type(), len(vertices), columns)
		c.worker.Zero(x)
		return nn.Input{Vertices: vertices, Dense: x}
	}
	of.Graph = &graph
	return &of
}

// rowBytes returns the mean size of a row of features on the wire.
func rowBytes(s *features.Store, wire string) (float64, error) {
	form, err := s.Form(wire)
	if err != nil {
		return 0, err
	}
	if !form.Sparse() {
		return float64(form.RowBytes()), nil
	}
	const looks = 4096
	bytes, rows, vertices := 0, 0, s.Vertices()
	var row []byte
	for v := uint32(0); v < vertices; v += max(1, vertices/looks) {
		row = s.Append(row[:0], form, v)
		bytes, rows = bytes+len(row), rows+1
	}
	return float64(bytes) / float64(max(1, rows)), nil
}

// ones gives blocks that were drawn without values a 1 for each entry, in memory that is
// reused.
func ones(blocks []sample.Block, to []float32) []float32 {
	for i := range blocks {
		for len(to) <= blocks[i].Entries() {
			to = append(to, 1)
		}
	}
	for i := range blocks {
		blocks[i].Values = to[:blocks[i].Entries()]
	}
	return to
}
