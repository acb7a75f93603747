package strategies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/strategy/pipe/costs"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// A Volume is what formulas say that the authors' eight nodes send in an epoch of one
// model on one graph, in bytes.
type Volume struct {
	Graph   string  `json:"graph"`
	Model   string  `json:"model"`
	Alpha   float64 `json:"alpha"`
	Halo    uint64  `json:"graph_halo_bytes"`
	Sums    uint64  `json:"graph_gradient_bytes"` // of the authors' models
	Pipe    uint64  `json:"pipe_boundary_bytes"`
	Rows    float64 `json:"rows_ratio"`    // L alpha / ((S-1) n_b)
	Counted float64 `json:"counted_ratio"` // with graph's sums, as the authors count
	Ours    float64 `json:"our_ratio"`     // the same, of our models
}

// volumes returns those at the published vertices, widths and mirrors.
func volumes() (list []Volume, err error) {
	for _, g := range deepGraphs {
		for _, model := range deepModels {
			m, err := deep(model, deepLayers, g.hidden, g.features, g.classes)
			if err != nil {
				return nil, err
			}
			all := arrangements(publishedNodes)
			whole := all[0].sizes(m, g.vertices, int(math.Round(g.alpha*float64(g.vertices))), g.hidden)
			whole.Layers = deepLayers // the authors exchange rows before the first, too
			a, b := whole.Of(), all[1].sizes(m, g.vertices, 0, g.hidden).Of()
			whole.Weights = g.weights(model)
			sums := whole.Of().Sum
			list = append(list, Volume{
				Graph: g.name, Model: model, Alpha: g.alpha, Halo: a.Halo, Sums: sums, Pipe: b.Boundary,
				Rows: float64(a.Halo) / float64(b.Boundary), Counted: float64(a.Halo+sums) / float64(b.Boundary),
				Ours: float64(a.Total()) / float64(b.Total()),
			})
		}
	}
	return list, nil
}

// weights counts the weights of the authors' models, without biases. ResGCN+ has two products
// a layer, as GraphSAGE has.
func (g *deepGraph) weights(model string) int {
	in, square, out := g.features*g.hidden, g.hidden*g.hidden, g.hidden*g.classes
	switch model {
	case "gcn":
		return in + (deepLayers-1)*square + out
	case "sage":
		return 2*in + 2*(deepLayers-1)*square + out
	case "gcnii":
		return in + deepLayers*square + out
	}
	return in + 2*deepLayers*(square+g.hidden) + out // resgcn, with a LayerNorm for each layer
}

// volumeFigures compares the formulas with the published ratios, which are geometric means
// without arXiv and count graph's sums of gradients but none of a pipeline's.
func volumeFigures(list []Volume) []bench.Figure {
	var counted, rows, ours []float64
	best := list[0]
	for _, v := range list {
		if v.Counted > best.Counted {
			best = v
		}
		if v.Graph != "arXiv" {
			counted, rows, ours = append(counted, v.Counted), append(rows, v.Rows), append(ours, v.Ours)
		}
	}
	near := func(name string, value, want float64) bench.Figure {
		return bench.Figure{
			Name: name, Value: value, Unit: "x", Bar: fmt.Sprintf("%g x as published, to %.0f %%", want, 100*publishedSlack),
			Holds: math.Abs(value/want-1) <= publishedSlack,
		}
	}
	return []bench.Figure{
		near("bytes of graph over pipe by the formulas, 8 nodes, geometric mean of 16", stats.Geometric(counted), publishedBytes),
		near(fmt.Sprintf("and at best (%s, %s)", best.Graph, best.Model), best.Counted, publishedBytesBest),
		{Name: "the same mean, of rows alone", Value: stats.Geometric(rows), Unit: "x"},
		{Name: "the same mean as the authors count, of our models", Value: stats.Geometric(ours), Unit: "x"},
	}
}

// A formula says what bytes a job must send.
type formula struct {
	expected Moved
	history  uint64 // to make one
	chunked  bool   // there are histories
	// slack is how many bytes sums may differ by: where stages share partial sums, an odd
	// column more or less in a stage changes some, and where stages begin is measured.
	slack uint64
}

// newFormula returns the formula of a model that is shared by an arrangement.
func newFormula(ctx context.Context, d api.Dataset, c *cut, a arrangement, model string, layers, hidden int) (*formula, error) {
	net, err := deep(model, layers, hidden, d.Features, d.Classes)
	if err != nil {
		return nil, err
	}
	if a.owned {
		net = net.Split()
	}
	mirrors, partials, err := c.counts(ctx, net, a)
	if err != nil {
		return nil, err
	}
	sizes := a.sizes(net, int(d.Vertices), mirrors, hidden)
	sizes.Partials = partials
	v, slack := sizes.Of(), uint64(0)
	if a.stages > 1 && partials > 0 {
		slack = uint64(sizes.Number * a.stages * len(c.shards))
	}
	return &formula{
		Moved{
			Model: model, Layers: layers, Hidden: hidden, Strategy: a.String(), Nodes: a.nodes,
			Alpha: float64(mirrors) / float64(d.Vertices), RowsBy: v.Boundary + v.Halo, SumsBy: v.Sum,
		},
		sizes.History(), a.chunks() > a.ways, slack,
	}, nil
}

// of returns what was counted in an epoch, without what made histories. It returns an error
// unless that is what the formulas say: other ratios of counts would mean nothing.
func (f *formula) of(e api.JobEpoch) (Moved, error) {
	const framing = peer.QueryFraming + peer.AnswerFraming
	m := f.expected
	m.Rows = e.Bytes.Activation - framing*e.Requests.Activation
	m.Sums = e.Bytes.Gradient - framing*e.Requests.Gradient
	if f.chunked && (e.Epoch-1)%deepPeriod == 0 {
		m.Rows -= f.history
	}
	if m.Rows != m.RowsBy || max(m.Sums, m.SumsBy)-min(m.Sums, m.SumsBy) > f.slack {
		return m, fmt.Errorf("%s with %s: nodes sent %d bytes of rows and %d of gradients in epoch %d, and the formulas say %d and %d",
			m.Model, m.Strategy, m.Rows, m.Sums, e.Epoch, m.RowsBy, m.SumsBy)
	}
	return m, nil
}

// A cut is a dataset's topology, and where its shards begin.
type cut struct {
	dir    string
	shards []*graph.Shard
	firsts []uint32 // of each shard, then how many vertices there are
	edges  *sample.Topology
}

// cutAgain makes the topology of a dataset once more that nodes generated from its seed,
// without features, on which no cut depends.
func cutAgain(ctx context.Context, b *suite, r api.GenerateRequest, d api.Dataset) (c *cut, err error) {
	c = &cut{dir: filepath.Join(b.run.Dir, "cut "+r.Name), firsts: []uint32{0}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	src, err := generate.New(generate.Options{
		Kind: r.Kind, Vertices: uint32(r.Vertices), Edges: r.Edges, Classes: r.Classes, Communities: r.Communities,
		Inside: *r.Inside, Homophily: *r.Homophily, Seed: r.Seed,
	})
	if err != nil {
		return c, err
	}
	made, err := build.Run(ctx, src, build.Options{
		Dir: c.dir, Scratch: c.dir + ".scratch", Shards: r.Shards, Partitioner: r.Partitioner, DType: graph.F32, Seed: r.Seed,
	})
	if err := errors.Join(err, src.Close()); err != nil {
		return c, err
	}
	for i, s := range made.Shards {
		if i >= len(d.Shards) || d.Shards[i].Edges != s.Edges || d.Shards[i].Halo != s.Halo {
			return c, fmt.Errorf("%s is cut differently here than by the nodes, in shard %d", r.Name, i)
		}
		shard, err := graph.OpenShard(filepath.Join(c.dir, graph.ShardFile(i)))
		if err != nil {
			return c, err
		}
		c.shards, c.firsts = append(c.shards, shard), append(c.firsts, c.firsts[i]+uint32(s.Vertices))
	}
	c.edges, err = sample.NewTopology(c.shards)
	return c, err
}

func (c *cut) close() error {
	err := os.RemoveAll(c.dir)
	for _, s := range c.shards {
		err = errors.Join(err, s.Close())
	}
	return err
}

// counts returns how many mirrors a model's vertices have where nodes share it so, and the
// number of partial sums. Which shards make a way is found as nodes find it when they have
// met, with nominal costs for those that they measure.
func (c *cut) counts(ctx context.Context, m *nn.Model, a arrangement) (mirrors, partials int, err error) {
	settings := pipe.Of(&strategy.Settings{Strategy: a.strategy})
	if a.strategy == pipe.Name {
		settings.Stages, settings.Ways = a.stages, a.ways
	}
	f := &pipe.Facts{
		Model: m, Census: census.New(c.firsts, c.edges, m.Form()), Network: costs.Usual, Settings: settings, Number: 4,
		Layout: peer.Layout{Nodes: a.nodes, Firsts: c.firsts, Owners: make([]int, len(c.shards))},
	}
	f.Costs = costs.Nominal(m.Stages(), f.Census)
	all, err := f.Candidates(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	t := pipe.Task{Model: m, Topology: c.edges}
	if err := t.Place(&all[0], f); err != nil {
		return 0, 0, err
	}
	return f.Census.Mirrors(t.Shape).Count(), t.Partials(a.nodes), nil
}
