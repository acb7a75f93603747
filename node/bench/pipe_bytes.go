package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// Moved is what the nodes of a job sent each other in an epoch, payload alone, and what
// the formulas say.
type Moved struct {
	Graph    string  `json:"graph"`
	Model    string  `json:"model"`
	Layers   int     `json:"layers"`
	Hidden   int     `json:"hidden"`
	Strategy string  `json:"strategy"` // of so many stages and ways
	Nodes    int     `json:"nodes"`
	Alpha    float64 `json:"alpha"` // mirrors for each vertex, among its ways
	Rows     uint64  `json:"row_bytes"`
	RowsBy   uint64  `json:"row_bytes_by_formula"`
	Sums     uint64  `json:"gradient_bytes"`
	SumsBy   uint64  `json:"gradient_bytes_by_formula"`
	Ratio    float64 `json:"ratio,omitempty"`            // of graph's rows over these
	RatioBy  float64 `json:"ratio_by_formula,omitempty"` // L alpha / ((S-1) n_b), of pipe with one way
}

const (
	// What is counted is of rows that are narrow, since bytes are as many for each column.
	countedHidden = 8
	countedNodes  = publishedNodes
	countedWidth  = 16 // features, which no byte that is counted depends on
)

// countedModels send one row of each vertex from stage to stage, and two.
var countedModels = []string{"gcn", "gcnii"}

// counted trains an epoch of each case on nodes in this process, and counts.
func (b *bench) counted(ctx context.Context) (figures []Figure, err error) {
	f := fleet.New(filepath.Join(b.dir, "counted"), b.cfg.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range countedNodes {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	return b.countAll(ctx, f.Nodes[0].API(), countedNodes, deepGraphs, deepLayers)
}

// countAll counts on so many nodes, and makes figures of that.
func (b *bench) countAll(ctx context.Context, on host, nodes int, graphs []deepGraph, layers int) ([]Figure, error) {
	var ratios, formulas []float64
	var shallow, whole uint64 // of pipe, with half the layers and with all
	for i := range graphs {
		g := &graphs[i]
		r := g.made(nodes, countedWidth)
		d, err := on.GenerateDataset(ctx, r, func(api.DatasetEvent) {})
		if err != nil {
			return nil, err
		}
		c, err := b.cut(ctx, r, d)
		if err != nil {
			return nil, err
		}
		for _, model := range countedModels {
			of, err := b.countModel(ctx, on, d, c, model, layers, nodes)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%s on %s: %w", model, g.name, err), c.close())
			}
			for j := range of {
				of[j].Graph = g.name
			}
			ratios, formulas = append(ratios, of[1].Ratio), append(formulas, of[1].RatioBy)
			b.report.Moved = append(b.report.Moved, of...)
		}
		if i == 0 {
			half, err := b.countOne(ctx, on, d, c, arrangements(nodes)[1], countedModels[0], layers/2)
			if err != nil {
				return nil, errors.Join(err, c.close())
			}
			shallow, whole = half.Rows, b.report.Moved[1].Rows
		}
		if err := c.close(); err != nil {
			return nil, err
		}
	}
	return []Figure{
		{Name: "cases whose bytes were counted, and are the formulas' to the byte", Value: float64(len(b.report.Moved)), Unit: "cases"},
		against(fmt.Sprintf("rows' bytes of pipe with %d layers", layers), "MB", float64(whole)/1e6, fmt.Sprintf("%d layers", layers/2), float64(shallow)/1e6,
			"exactly 1x", func(r float64) bool { return r == 1 }),
		against(fmt.Sprintf("rows' bytes of graph over pipe as counted, %d nodes, geometric mean of %d", nodes, len(ratios)), "x", geometric(ratios),
			"L alpha / ((S-1) n_b)", geometric(formulas), "0.95 to 1x", func(r float64) bool { return r >= 0.95 && r <= 1.0001 }),
	}, nil
}

// countModel counts what one model sends in each arrangement.
func (b *bench) countModel(ctx context.Context, on host, d api.Dataset, c *cut, model string, layers, nodes int) (list []Moved, err error) {
	for i, a := range arrangements(nodes) {
		m, err := b.countOne(ctx, on, d, c, a, model, layers)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			m.Ratio = float64(list[0].Rows) / float64(m.Rows)
		}
		if i > 0 && a.ways == 1 {
			m.RatioBy = float64(layers) * list[0].Alpha / (float64(a.stages-1) * tensorsOf(model))
		}
		list = append(list, m)
	}
	return list, nil
}

// tensorsOf is how many rows of each vertex a model sends from stage to stage.
func tensorsOf(model string) float64 {
	if model == "gcnii" {
		return 2
	}
	return 1
}

// countOne trains an epoch of one arrangement, in which histories are made where there are
// some.
func (b *bench) countOne(ctx context.Context, on host, d api.Dataset, c *cut, a arrangement, model string, layers int) (Moved, error) {
	b.note("  bytes of %s, %d layers, on %s: %s", model, layers, d.Name, a)
	f, err := newFormula(ctx, d, c, a, model, layers, countedHidden)
	if err != nil {
		return Moved{}, err
	}
	j, err := trained(ctx, on, a.ask(d.Name, model, layers, countedHidden, 1), silent)
	if err != nil {
		return Moved{}, err
	}
	return f.of(j.History[0])
}

// A formula says what is to be counted.
type formula struct {
	expected Moved
	history  uint64 // to make one
	chunked  bool   // there are histories
	// slack is by how many bytes sums may be off: where stages share partial sums, an odd
	// column more or less in a stage moves some, and where stages begin is measured.
	slack uint64
}

// newFormula is that of a model that is shared so.
func newFormula(ctx context.Context, d api.Dataset, c *cut, a arrangement, model string, layers, hidden int) (*formula, error) {
	net, err := deep(model, layers, hidden, d.Features, d.Classes)
	if err != nil {
		return nil, err
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

// of is what was counted in an epoch, without what made histories. What is not as the
// formulas say is an error: no ratio of such counts is worth anything.
func (f *formula) of(e api.JobEpoch) (Moved, error) {
	const framing = strategy.QueryFraming + strategy.AnswerFraming
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
