package strategies

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Timed is how long an epoch of one model takes with one strategy.
type Timed struct {
	Model    string  `json:"model"`
	Width    int     `json:"features"`
	Hidden   int     `json:"hidden"`
	Strategy string  `json:"strategy"`
	Way      string  `json:"way"`           // the strategy with its settings
	Seconds  float64 `json:"epoch_seconds"` // median; 0: refused
	// Fetching is the share of that which is spent waiting for features of other nodes:
	// what is saved if each node has all of them. Of centric alone.
	Fetching float64 `json:"fetching,omitempty"`
	Refused  string  `json:"refused,omitempty"` // a sentence
}

// measureTime trains behind links of one rate: the ladders, and all models with all
// strategies.
func measureTime(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	l := link(b.run.Nodes)
	b.report.note("times of epochs, and those of the ladder, are of %d nodes with %s and %.2f cores each", b.run.Nodes, shape.FormatRate(l.Rate), l.Cores)
	c, stop, err := startNodes(ctx, b, "shaped", b.run.Nodes, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	planted, err := on.GenerateDataset(ctx, graphSpecs[0].made(ladderWidth, 0), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	if figures, err = runLadder(ctx, b, on, planted, ladderLoad, ladder(b.run.Nodes)); err != nil {
		return nil, err
	}
	apart, whole := make([]api.Dataset, len(widths)), make([]api.Dataset, len(widths))
	for i, width := range widths {
		if apart[i], err = on.GenerateDataset(ctx, halfGraph.made(width, 0), func(api.DatasetEvent) {}); err != nil {
			return nil, err
		}
		if whole[i], err = on.GenerateDataset(ctx, halfGraph.made(width, b.run.Nodes-1), func(api.DatasetEvent) {}); err != nil {
			return nil, err
		}
	}
	columns, err := runColumnLadder(ctx, b, on, apart[0], ladderLoad, columnLadder())
	if err != nil {
		return nil, err
	}
	figures = append(figures, columns...)
	for _, model := range timedModels {
		for i := range widths {
			for _, hidden := range timedHidden {
				if err := compare(ctx, b, on, apart[i], whole[i], load{model, hidden, timedFanouts, timedBatch}); err != nil {
					return nil, err
				}
			}
		}
	}
	return append(figures, timeFigures(b.report.Times)...), nil
}

// compare times one model with each strategy.
func compare(ctx context.Context, b *suite, on host, apart, whole api.Dataset, l load) error {
	for _, way := range timedWays {
		t := Timed{Model: l.model, Width: apart.Features, Hidden: l.hidden, Strategy: way.strategy, Way: way.name}
		j, err := runJob(ctx, on, l.ask(apart.Name, way.strategy, warmUp+measured, way.set...), silent)
		if no, ok := errors.AsType[errRefusal](err); ok && way.strategy == "p3" { // which not all models can be trained with
			t.Refused = no.Error()
		} else if err != nil {
			return fmt.Errorf("%s of width %d: %w", l, apart.Features, err)
		} else {
			t.Seconds = medianEpoch(j)
		}
		if way.strategy == "centric" {
			j, err := runJob(ctx, on, l.ask(whole.Name, way.strategy, warmUp+measured), silent)
			if err != nil {
				return err
			}
			t.Fetching = max(0, 1-medianEpoch(j)/t.Seconds)
		}
		b.run.Progress("  %s, width %d, %s: %.2f s %s", l, t.Width, way.name, t.Seconds, t.Refused)
		b.report.Times = append(b.report.Times, t)
	}
	return nil
}

// timeFigures makes the figures of the times.
func timeFigures(times []Timed) (figures []bench.Figure) {
	type model struct {
		name          string
		width, hidden int
	}
	centric, fastestP3 := map[model]Timed{}, map[model]float64{}
	of := func(t Timed) model { return model{t.Model, t.Width, t.Hidden} }
	for _, t := range times {
		switch at := fastestP3[of(t)]; {
		case t.Strategy == "centric":
			centric[of(t)] = t
		case t.Strategy == "p3" && t.Seconds > 0 && (at <= 0 || t.Seconds < at):
			fastestP3[of(t)] = t.Seconds
		}
	}
	var faster, fetching, overP3 []float64
	for _, t := range times {
		if t.Strategy == "centric" {
			fetching = append(fetching, t.Fetching)
			continue
		}
		if t.Refused != "" {
			continue // as details say
		}
		c := centric[of(t)]
		name := fmt.Sprintf("an epoch of %s, width %d, hidden %d, %s", t.Model, t.Width, t.Hidden, t.Way)
		figures = append(figures, bench.Figure{Name: name, Value: t.Seconds, Unit: "s", Baseline: "centric", Ceiling: c.Seconds, Ratio: t.Seconds / c.Seconds})
		if t.Strategy == "leap" {
			faster = append(faster, c.Seconds/t.Seconds)
			if p3 := fastestP3[of(t)]; p3 > 0 {
				overP3 = append(overP3, p3/t.Seconds)
			}
		}
	}
	share := stats.Mean(fetching)
	figures = append(figures,
		bench.Figure{Name: "share of its time that centric waits for features, mean", Value: 100 * share, Unit: "%",
			Bar: fmt.Sprintf("%.0f to %.0f %%", 100*published[0], 100*published[1]), Holds: share >= published[0] && share <= published[1]},
		bench.AtLeast("leap faster than centric, geometric mean", stats.Geometric(faster), 2))
	if len(overP3) > 0 {
		most := overP3[0]
		for _, x := range overP3 {
			most = max(most, x)
		}
		figures = append(figures,
			bench.Figure{Name: "leap faster than the fastest p3, geometric mean", Value: stats.Geometric(overP3), Unit: "x"},
			bench.AtLeast("leap faster than the fastest p3, at best", most, 4.2))
	}
	return figures
}
