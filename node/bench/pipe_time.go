package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
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
	// Predicted is what the nodes thought that an epoch would take, in seconds, when they
	// had met; 0: they did not say. Chosen: the stages and ways are those that they found
	// best.
	Predicted float64 `json:"predicted_seconds,omitempty"`
	Chosen    bool    `json:"chosen,omitempty"`
}

// doubled are the cases that are timed on twice as many nodes, too.
var doubled = map[string][]string{"Flickr": {"gcn"}, "Reddit": {"gcnii"}}

// piped compares pipe with graph: by the formulas, by counted bytes, and by time where
// links are as slow as graph's published share of exchanging wants.
func (b *bench) piped(ctx context.Context) ([]Figure, error) {
	v, err := volumes()
	if err != nil {
		return nil, err
	}
	b.report.Volumes = v
	figures := judgedVolumes(v)
	counts, err := b.counted(ctx)
	if err != nil {
		return nil, err
	}
	figures = append(figures, counts...)
	for _, nodes := range []int{publishedNodes / 2, publishedNodes} {
		if err := b.race(ctx, nodes); err != nil {
			return nil, err
		}
	}
	if err := plotPiped(b.cfg.PlotPipe, b.report.Piped); err != nil {
		return nil, err
	}
	return append(figures, judgedPiped(b.report.Piped)...), nil
}

// race takes the times of all cases on so many nodes.
func (b *bench) race(ctx context.Context, nodes int) (err error) {
	l := link(nodes)
	l.Rate = shape.Free
	c, stop, err := b.crew(ctx, fmt.Sprintf("pipe on %d", nodes), nodes, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("times of pipe and graph on %d nodes are with %.3g cores each, and with a rate for each graph", nodes, l.Cores))
	on := remote{c.Nodes[0].API}
	for i := range deepGraphs {
		g, models := &deepGraphs[i], deepModels
		if nodes == publishedNodes {
			if models = doubled[g.name]; models == nil {
				continue
			}
		}
		// Data comes over as fast as it can.
		_ = c.Pace(ctx, 0) // where it can't be changed, calibrate says so
		r := g.made(nodes, g.width)
		d, err := on.GenerateDataset(ctx, r, func(api.DatasetEvent) {})
		if err != nil {
			return err
		}
		rate, err := b.calibrate(ctx, on, c, g, d, arrangements(nodes)[0])
		if err != nil {
			return err
		}
		parts, err := b.cut(ctx, r, d)
		if err != nil {
			return err
		}
		for _, model := range models {
			if err := b.raceModel(ctx, on, g, d, parts, model, rate, nodes); err != nil {
				return errors.Join(fmt.Errorf("%s on %s: %w", model, g.name, err), parts.close())
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

// calibrate chooses the rate at which graph exchanges rows for the published share of its
// time, where it does not do so for longer without any bound, and sets it.
func (b *bench) calibrate(ctx context.Context, on host, c *shape.Crew, g *deepGraph, d api.Dataset, a arrangement) (rate uint64, err error) {
	const (
		model = "gcnii" // of which the share is published
		tries = 3
		near  = 0.04
	)
	for range tries {
		j, err := trained(ctx, on, a.ask(d.Name, model, deepLayers, deepHidden, warmUp+measured), silent)
		if err != nil {
			return 0, err
		}
		share := waiting(j)
		b.note("  %s, %d nodes, %s: graph waits for %.0f %% of its time", g.name, a.nodes, rateOf(rate), 100*share)
		if rate == 0 && share > publishedHalo-near || math.Abs(share-publishedHalo) < near {
			return rate, nil
		}
		rate = rateFor(j, a.nodes, rate)
		if err := c.Pace(ctx, rate); err != nil {
			b.report.Notes = append(b.report.Notes, fmt.Sprintf("%s has no bound of its rate: %v", g.name, err))
			return 0, nil
		}
	}
	return rate, nil
}

// rateFor is the rate at which the exchange of a job would take the published share of its
// time, if it were bound by that alone; the better guess is of a job that had a rate.
func rateFor(j api.Job, nodes int, had uint64) uint64 {
	e := j.History[len(j.History)-1]
	waited := waiting(j) * e.Seconds
	wanted := (e.Seconds - waited) * publishedHalo / (1 - publishedHalo)
	if had > 0 {
		return uint64(float64(had) * waited / wanted)
	}
	return uint64(8 * float64(e.Bytes.Activation+e.Bytes.Gradient) / float64(nodes) / wanted)
}

// waiting is the share of the measured epochs in which nodes waited for each other.
func waiting(j api.Job) float64 {
	waited, all := 0.0, 0.0
	for _, e := range j.History[len(j.History)-measured:] {
		waited, all = waited+e.Phases.Reduce, all+e.Seconds
	}
	return waited / all
}

// rateOf writes a rate that may be none.
func rateOf(rate uint64) string {
	if rate == 0 {
		return "no bound"
	}
	return fmt.Sprintf("%.0f Mbit/s", float64(rate)/1e6)
}

// raceModel takes the times of one model in all arrangements, and in the one that nodes
// choose.
func (b *bench) raceModel(ctx context.Context, on host, g *deepGraph, d api.Dataset, c *cut, model string, rate uint64, nodes int) error {
	graph := 0.0
	for _, a := range append(arrangements(nodes), arrangement{strategy: strategy.Pipe, nodes: nodes}) {
		p, err := b.raceOne(ctx, on, d, c, a, model)
		if err != nil {
			return err
		}
		p.Graph, p.Rate = g.name, rate
		switch {
		case a.strategy == strategy.Graph:
			graph = p.Seconds
		default:
			p.Ratio = graph / p.Seconds
		}
		if a.strategy == strategy.Pipe && a.ways == 1 {
			p.Authors = g.published(model)
		}
		b.note("  %s, %s, %s: %.2f s, %.0f %% of it waiting; predicted %.2f s", g.name, model, p.Strategy, p.Seconds, 100*p.Waiting, p.Predicted)
		b.report.Piped = append(b.report.Piped, p)
	}
	return nil
}

// raceOne takes the times of one arrangement, whose bytes are the formula's in each epoch.
func (b *bench) raceOne(ctx context.Context, on host, d api.Dataset, c *cut, a arrangement, model string) (Piped, error) {
	j, err := trained(ctx, on, a.ask(d.Name, model, deepLayers, deepHidden, warmUp+measured), silent)
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
		if e.Predicted != nil {
			p.Predicted = e.Predicted.Seconds
		}
	}
	return p, nil
}

// withHistory is what an epoch takes, with its part of making a history: that is what the
// first takes longer, if anything, as far as it is not that all is new.
func withHistory(j api.Job, a arrangement) float64 {
	s := usual(j)
	if a.chunks() > a.ways {
		s += max(0, j.History[0].Seconds-s) / deepPeriod
	}
	return s
}
