package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Timed is how long an epoch of one model takes with one strategy.
type Timed struct {
	Model    string  `json:"model"`
	Width    int     `json:"features"`
	Hidden   int     `json:"hidden"`
	Strategy string  `json:"strategy"`
	Seconds  float64 `json:"epoch_seconds"` // median; 0: refused
	// Fetching is the share of that which is spent waiting for features of other nodes:
	// what goes if each node has all of them. Of centric alone.
	Fetching float64 `json:"fetching,omitempty"`
	Refused  string  `json:"refused,omitempty"` // a sentence
}

// crew starts nodes as programs of their own, behind links as given.
func (b *bench) crew(ctx context.Context, what string, nodes int, l shape.Link) (c *shape.Crew, stop func() error, err error) {
	field, err := shape.New(ctx, nodes, l)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range field.Notes() {
		b.report.Notes = append(b.report.Notes, what+": "+n)
	}
	dir := filepath.Join(b.dir, what)
	if err := mkdir(dir); err != nil {
		return nil, nil, errors.Join(err, field.Close())
	}
	if c, err = field.Start(ctx, b.cfg.Program, dir); err != nil {
		return nil, nil, errors.Join(err, field.Close())
	}
	return c, func() error { return errors.Join(c.Stop(), field.Close()) }, nil
}

// shaped trains behind links of one rate: the ladders, and all models with all strategies.
func (b *bench) shaped(ctx context.Context) (figures []Figure, err error) {
	l := link(b.cfg.Nodes)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("times of epochs, and those of the ladder, are of %d nodes with %s and %.2f cores each", b.cfg.Nodes, shape.FormatRate(l.Rate), l.Cores))
	c, stop, err := b.crew(ctx, "shaped", b.cfg.Nodes, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	on := remote{c.Nodes[0].API}
	planted, err := on.GenerateDataset(ctx, meadows[0].made(climbedWidth, 0), func(api.DatasetEvent) {})
	if err != nil {
		return nil, err
	}
	if figures, err = b.climb(ctx, on, planted, climbed, rungs(b.cfg.Nodes)); err != nil {
		return nil, err
	}
	apart, whole := make([]api.Dataset, len(widths)), make([]api.Dataset, len(widths))
	for i, width := range widths {
		if apart[i], err = on.GenerateDataset(ctx, halved.made(width, 0), func(api.DatasetEvent) {}); err != nil {
			return nil, err
		}
		if whole[i], err = on.GenerateDataset(ctx, halved.made(width, b.cfg.Nodes-1), func(api.DatasetEvent) {}); err != nil {
			return nil, err
		}
	}
	columns, err := b.climbColumns(ctx, on, apart[0], climbed, columnRungs())
	if err != nil {
		return nil, err
	}
	figures = append(figures, columns...)
	for _, model := range timedModels {
		for i := range widths {
			for _, hidden := range timedHidden {
				if err := b.compare(ctx, on, apart[i], whole[i], load{model, hidden, timedFanouts, timedBatch}); err != nil {
					return nil, err
				}
			}
		}
	}
	return append(figures, judged(b.report.Times)...), nil
}

// compare takes the time of one model with each strategy.
func (b *bench) compare(ctx context.Context, on host, apart, whole api.Dataset, l load) error {
	for _, way := range timedWays {
		t := Timed{Model: l.model, Width: apart.Features, Hidden: l.hidden, Strategy: way}
		j, err := trained(ctx, on, l.ask(apart.Name, way, warmUp+measured, timedSet[way]...), silent)
		if no, ok := errors.AsType[errRefusal](err); ok && way == "p3" { // which not all models can be trained with
			t.Refused = no.Error()
		} else if err != nil {
			return fmt.Errorf("%s of width %d: %w", l, apart.Features, err)
		} else {
			t.Seconds = usual(j)
		}
		if way == "centric" {
			j, err := trained(ctx, on, l.ask(whole.Name, way, warmUp+measured), silent)
			if err != nil {
				return err
			}
			t.Fetching = max(0, 1-usual(j)/t.Seconds)
		}
		b.note("  %s, width %d, %s: %.2f s %s", l, t.Width, way, t.Seconds, t.Refused)
		b.report.Times = append(b.report.Times, t)
	}
	return nil
}

// judged makes figures of the times.
func judged(times []Timed) (figures []Figure) {
	type model struct {
		name          string
		width, hidden int
	}
	centric := map[model]Timed{}
	of := func(t Timed) model { return model{t.Model, t.Width, t.Hidden} }
	for _, t := range times {
		if t.Strategy == "centric" {
			centric[of(t)] = t
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
		name := fmt.Sprintf("an epoch of %s, width %d, hidden %d, %s", t.Model, t.Width, t.Hidden, t.Strategy)
		figures = append(figures, Figure{Name: name, Value: t.Seconds, Unit: "s", Yardstick: "centric", Ceiling: c.Seconds, Ratio: t.Seconds / c.Seconds})
		switch t.Strategy {
		case "leap":
			faster = append(faster, c.Seconds/t.Seconds)
		case "p3":
			for _, l := range times {
				if l.Strategy == "leap" && of(l) == of(t) {
					overP3 = append(overP3, t.Seconds/l.Seconds)
				}
			}
		}
	}
	share := mean(fetching)
	figures = append(figures,
		Figure{Name: "share of its time that centric waits for features, mean", Value: 100 * share, Unit: "%",
			Bar: fmt.Sprintf("%.0f to %.0f %%", 100*published[0], 100*published[1]), Holds: share >= published[0] && share <= published[1]},
		atLeast("leap faster than centric, geometric mean", geometric(faster), 2))
	if len(overP3) > 0 {
		most := overP3[0]
		for _, x := range overP3 {
			most = max(most, x)
		}
		figures = append(figures, atLeast("leap faster than p3, at best", most, 4.2))
	}
	return figures
}

// atLeast makes a ratio that must reach a limit.
func atLeast(name string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: "x", Bar: fmt.Sprintf("at least %g x", limit), Holds: value >= limit}
}

func geometric(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
