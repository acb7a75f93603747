package strategies

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// Moved is what the nodes of a job sent each other in an epoch, payload alone, beside what
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
	// Narrow rows do: each column takes as many bytes.
	countedHidden = 8
	countedNodes  = publishedNodes
	countedWidth  = 16 // features, on which no counted byte depends
)

// countedModels send one row of each vertex from stage to stage, and two.
var countedModels = []string{"gcn", "gcnii"}

// measurePipeBytes trains an epoch of each case on nodes in this process, and counts what
// they send.
func measurePipeBytes(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	f := fleet.New(filepath.Join(b.run.Dir, "counted"), b.run.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range countedNodes {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	return countAll(ctx, b, f.Nodes[0].API(), countedNodes, deepGraphs, deepLayers)
}

// countAll counts on so many nodes and makes the figures.
func countAll(ctx context.Context, b *suite, on host, nodes int, graphs []deepGraph, layers int) ([]bench.Figure, error) {
	var ratios, formulas []float64
	var shallow, whole uint64 // of pipe, with half the layers and with all
	for i := range graphs {
		g := &graphs[i]
		r := g.made(nodes, countedWidth)
		d, err := on.GenerateDataset(ctx, r, func(api.DatasetEvent) {})
		if err != nil {
			return nil, err
		}
		c, err := cutAgain(ctx, b, r, d)
		if err != nil {
			return nil, err
		}
		for _, model := range countedModels {
			of, err := countModel(ctx, b, on, d, c, model, layers, nodes)
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
			half, err := countOne(ctx, b, on, d, c, arrangements(nodes)[1], countedModels[0], layers/2)
			if err != nil {
				return nil, errors.Join(err, c.close())
			}
			shallow, whole = half.Rows, b.report.Moved[1].Rows
		}
		if err := c.close(); err != nil {
			return nil, err
		}
	}
	return []bench.Figure{
		{Name: "cases whose bytes were counted, and are the formulas' to the byte", Value: float64(len(b.report.Moved)), Unit: "cases"},
		bench.Against(fmt.Sprintf("rows' bytes of pipe with %d layers", layers), "MB", float64(whole)/1e6, fmt.Sprintf("%d layers", layers/2), float64(shallow)/1e6,
			bench.Exactly(1)),
		bench.Against(fmt.Sprintf("rows' bytes of graph over pipe as counted, %d nodes, geometric mean of %d", nodes, len(ratios)), "x", stats.Geometric(ratios),
			"L alpha / ((S-1) n_b)", stats.Geometric(formulas), bench.Bar{Text: "0.95 to 1x", Holds: func(r float64) bool { return r >= 0.95 && r <= 1.0001 }}),
	}, nil
}

// countModel counts what one model sends in each arrangement.
func countModel(ctx context.Context, b *suite, on host, d api.Dataset, c *cut, model string, layers, nodes int) (list []Moved, err error) {
	for i, a := range arrangements(nodes) {
		m, err := countOne(ctx, b, on, d, c, a, model, layers)
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

// tensorsOf returns how many rows of each vertex a model sends from stage to stage.
func tensorsOf(model string) float64 {
	if model == "gcnii" {
		return 2
	}
	return 1
}

// countOne trains one epoch of an arrangement, the one that makes histories if there are
// any.
func countOne(ctx context.Context, b *suite, on host, d api.Dataset, c *cut, a arrangement, model string, layers int) (Moved, error) {
	b.run.Progress("  bytes of %s, %d layers, on %s: %s", model, layers, d.Name, a)
	f, err := newFormula(ctx, d, c, a, model, layers, countedHidden)
	if err != nil {
		return Moved{}, err
	}
	j, err := runJob(ctx, on, a.ask(d.Name, model, layers, countedHidden, 1), silent)
	if err != nil {
		return Moved{}, err
	}
	return f.of(j.History[0])
}
