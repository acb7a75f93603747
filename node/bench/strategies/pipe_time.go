package strategies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Piped is how long an epoch of one deep model takes on one graph, shared in one way.
type Piped struct {
	Graph    string  `json:"graph"`
	Model    string  `json:"model"`
	Nodes    int     `json:"nodes"`
	Strategy string  `json:"strategy"` // of so many stages and ways
	Alpha    float64 `json:"alpha"`    // mirrors for each vertex, among its ways
	Rate     uint64  `json:"rate"`     // of each node's link, in bits a second; 0: no bound
	Seconds  float64 `json:"epoch_seconds"`
	Waiting  float64 `json:"waiting_share"` // for other nodes, of all nodes' time
	Bubble   float64 `json:"bubble_share"`  // of slots, by formula
	Rows     uint64  `json:"row_bytes"`     // payload, as counted and by formula
	Sums     uint64  `json:"gradient_bytes"`
	Ratio    float64 `json:"ratio,omitempty"`           // of graph's seconds over these
	Authors  float64 `json:"published_ratio,omitempty"` // the same, of pipe on the authors' eight GPUs
	// Chosen reports whether the nodes chose the stages and ways themselves.
	Chosen bool `json:"chosen,omitempty"`
}

// doubled are the cases that are timed on twice as many nodes too.
var doubled = map[string][]string{"Flickr": {"gcn"}, "Reddit": {"gcnii"}}

// measurePipe compares pipe with graph by the formulas and by counted bytes.
func measurePipe(ctx context.Context, b *suite) ([]bench.Figure, error) {
	v, err := volumes()
	if err != nil {
		return nil, err
	}
	b.report.Volumes = v
	figures := volumeFigures(v)
	counts, err := measurePipeBytes(ctx, b)
	if err != nil {
		return nil, err
	}
	return append(figures, counts...), nil
}

// measurePipeTime compares them by time, on links of the same rates for all graphs.
func measurePipeTime(ctx context.Context, b *suite) ([]bench.Figure, error) {
	for _, nodes := range []int{publishedNodes / 2, publishedNodes} {
		if graphs := timedOn(nodes, b.run.PipeGraphs); len(graphs) > 0 {
			if err := timeAll(ctx, b, nodes, graphs); err != nil {
				return nil, err
			}
		}
	}
	if err := pipeChart(b.report.Piped).Draw(b.run.PlotPipe); err != nil {
		return nil, err
	}
	return pipeFigures(b.report.Piped), nil
}

// pipeGraphs returns the names of the graphs that pipe is timed on.
func pipeGraphs() (names []string) {
	for i := range deepGraphs {
		names = append(names, deepGraphs[i].like.name)
	}
	return names
}

// timedOn returns the graphs that are timed on so many nodes, of those that are asked for; none: of
// all.
func timedOn(nodes int, asked []string) (list []*deepGraph) {
	for i := range deepGraphs {
		g := &deepGraphs[i]
		if (len(asked) == 0 || slices.Contains(asked, g.like.name)) && len(g.models(nodes)) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// models returns those that are timed on so many nodes.
func (g *deepGraph) models(nodes int) []string {
	if nodes == publishedNodes {
		return doubled[g.name]
	}
	return deepModels
}

// timeAll times the cases of some graphs on so many nodes.
func timeAll(ctx context.Context, b *suite, nodes int, graphs []*deepGraph) (err error) {
	l := link(nodes)
	l.Rate = shape.Free
	c, stop, err := startNodes(ctx, b, fmt.Sprintf("pipe on %d", nodes), nodes, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b.report.note("times of pipe and graph on %d nodes are with %.3g cores each", nodes, l.Cores)
	on := remote{c.Nodes[0].API}
	for _, g := range graphs {
		models := g.models(nodes)
		// The dataset is copied as fast as possible.
		if err := c.Pace(ctx, 0); err != nil {
			return err
		}
		r := g.timed(nodes)
		d, err := on.GenerateDataset(ctx, r, func(api.DatasetEvent) {})
		if err != nil {
			return err
		}
		parts, err := cutAgain(ctx, b, r, d)
		if err != nil {
			return err
		}
		for _, rate := range pipeRates {
			err := c.Pace(ctx, rate)
			for k := 0; k < len(models) && err == nil; k++ {
				err = timeModel(ctx, b, on, g, d, parts, models[k], rate, nodes)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("%s, %s: %w", g.name, rateOf(rate), err), parts.close())
			}
		}
		if err := parts.close(); err != nil {
			return err
		}
		if err := on.RemoveDataset(ctx, d.Name, true); err != nil {
			return err
		}
	}
	return nil
}

// waiting returns the share of the measured epochs in which nodes waited for each other.
func waiting(j api.Job) float64 {
	waited, all := 0.0, 0.0
	for _, e := range j.History[len(j.History)-measured:] {
		waited, all = waited+e.Phases.Reduce, all+e.Seconds
	}
	return waited / all
}

// rateOf formats a rate, of which 0 is no bound.
func rateOf(rate uint64) string {
	if rate == 0 {
		return "no bound"
	}
	return fmt.Sprintf("%.0f Mbit/s", float64(rate)/1e6)
}

// timeModel times one model in all arrangements, and in the one that nodes choose.
func timeModel(ctx context.Context, b *suite, on host, g *deepGraph, d api.Dataset, c *cut, model string, rate uint64, nodes int) error {
	graph := 0.0
	for _, a := range append(arrangements(nodes), arrangement{strategy: pipe.Name, nodes: nodes}) {
		p, err := timeOne(ctx, on, d, c, a, model)
		if err != nil {
			return err
		}
		p.Graph, p.Rate = g.name, rate
		switch {
		case a.strategy == pipe.GraphName:
			graph = p.Seconds
		default:
			p.Ratio = graph / p.Seconds
		}
		if a.strategy == pipe.Name && a.ways == 1 {
			p.Authors = g.published(model)
		}
		b.run.Progress("  %s, %s, %s: %.2f s, %.0f %% of it waiting", g.name, model, p.Strategy, p.Seconds, 100*p.Waiting)
		b.report.Piped = append(b.report.Piped, p)
	}
	return nil
}

// timeOne times one arrangement. Its bytes must be the formula's in each epoch.
func timeOne(ctx context.Context, on host, d api.Dataset, c *cut, a arrangement, model string) (Piped, error) {
	j, err := runJob(ctx, on, a.ask(d.Name, model, deepLayers, deepHidden, warmUp+measured), silent)
	if err != nil {
		return Piped{}, err
	}
	p := Piped{Model: model, Nodes: a.nodes, Waiting: waiting(j), Chosen: a.stages == 0}
	if a, err = a.chosen(j.History[0]); err != nil {
		return p, err
	}
	f, err := newFormula(ctx, d, c, a, model, deepLayers, deepHidden)
	if err != nil {
		return p, err
	}
	p.Strategy, p.Alpha, p.Bubble, p.Seconds = a.String(), f.expected.Alpha, a.bubble(), withHistory(j, a)
	for _, e := range j.History {
		m, err := f.of(e)
		if err != nil {
			return p, err
		}
		p.Rows, p.Sums = m.Rows, m.Sums
	}
	return p, nil
}

// withHistory returns the seconds of an epoch with its part of making a history: what the
// first epoch takes longer, if anything, over the epochs that a history is kept for.
func withHistory(j api.Job, a arrangement) float64 {
	s := medianEpoch(j)
	if a.chunks() > a.ways {
		s += max(0, j.History[0].Seconds-s) / deepPeriod
	}
	return s
}

// pipeFigures makes the figures of the times, for each rate. The published averages leave arXiv
// out.
func pipeFigures(list []Piped) (figures []bench.Figure) {
	for _, p := range list {
		switch {
		case p.Strategy == pipe.GraphName && p.Graph == "Reddit" && p.Model == "gcnii":
			figures = append(figures, bench.Beside(fmt.Sprintf("share of its time that graph waits for others, Reddit, gcnii, %d nodes, %s", p.Nodes, rateOf(p.Rate)),
				"%", 100*p.Waiting, "published", 100*publishedHalo))
		case p.Strategy != pipe.GraphName && !p.Chosen:
			figures = append(figures, bench.Figure{
				Name: fmt.Sprintf("an epoch of %s on %s, %d nodes, %s, %s", p.Model, p.Graph, p.Nodes, rateOf(p.Rate), p.Strategy), Value: p.Seconds, Unit: "s",
				Baseline: "graph", Ceiling: p.Seconds * p.Ratio, Ratio: 1 / p.Ratio,
			})
		}
	}
	for _, rate := range pipeRates {
		figures = append(figures, rateFigures(list, rate)...)
	}
	return slices.Concat(figures, choiceFigures(list))
}

// rateFigures are the means of one rate.
func rateFigures(list []Piped, rate uint64) []bench.Figure {
	var four, all, either []float64
	slower := 0
	best := Piped{}
	for i, p := range list {
		if p.Rate != rate || p.Authors == 0 {
			continue // graph, several ways, or chosen ones
		}
		if p.Ratio > best.Ratio {
			best = p
		}
		if p.Nodes != publishedNodes/2 {
			continue
		}
		all, either = append(all, p.Ratio), append(either, max(p.Ratio, list[i+1].Ratio))
		if p.Graph != "arXiv" {
			four = append(four, p.Ratio)
		}
		if p.Ratio < 1 {
			slower++
		}
	}
	if len(all) == 0 {
		return nil
	}
	at := rateOf(rate)
	return []bench.Figure{
		bench.AtLeast(fmt.Sprintf("pipe faster than graph, %s, mean of %d", at, len(four)), stats.Mean(four), publishedTime),
		bench.AtLeast(fmt.Sprintf("pipe faster than graph, %s, at best (%s, %s, %d nodes)", at, best.Graph, best.Model, best.Nodes), best.Ratio, publishedTimeBest),
		{Name: fmt.Sprintf("pipe faster than graph, %s, geometric mean of %d", at, len(all)), Value: stats.Geometric(all), Unit: "x"},
		{Name: fmt.Sprintf("the faster of one way and two, %s, geometric mean of %d", at, len(either)), Value: stats.Geometric(either), Unit: "x"},
		{Name: fmt.Sprintf("cases of %d in which graph is faster, %s", len(all), at), Value: float64(slower), Unit: "cases"},
	}
}

// choiceFigures compares what nodes choose with the fastest arrangement of pipe that was
// measured.
func choiceFigures(list []Piped) []bench.Figure {
	var over []float64
	var poor Piped
	least := 0.0 // of the case
	for _, p := range list {
		if p.Strategy == pipe.GraphName {
			least = math.Inf(1)
		} else {
			least = min(least, p.Seconds)
		}
		if p.Chosen {
			if over = append(over, p.Seconds/least); over[len(over)-1] >= slices.Max(over) {
				poor = p
			}
		}
	}
	if len(over) == 0 {
		return nil
	}
	return []bench.Figure{
		{Name: fmt.Sprintf("what is chosen takes of the best, at most (%s, %s, %d nodes, %s)", poor.Graph, poor.Model, poor.Nodes, poor.Strategy), Value: slices.Max(over), Unit: "x",
			Bar: "at most 1.1 x", Holds: slices.Max(over) <= 1.1},
		{Name: fmt.Sprintf("what is chosen takes of the best, mean of %d", len(over)), Value: stats.Mean(over), Unit: "x"},
	}
}
