package strategies

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// A LadderRow is one step of LeapGNN's ladder. Counts are of all nodes together and of a
// training step, on average over an epoch.
type LadderRow struct {
	Name       string  `json:"name"`
	Slots      int     `json:"slots"`
	Requests   float64 `json:"requests"` // for features
	Remote     float64 `json:"remote_rows"`
	LocalShare float64 `json:"local_share"` // of all input rows
	Feature    float64 `json:"feature_bytes"`
	Model      float64 `json:"model_bytes"`
	Seconds    float64 `json:"epoch_seconds"` // median
}

// runLadder trains each step of the ladder.
func runLadder(ctx context.Context, b *suite, on host, d api.Dataset, l load, steps []ladderStep) ([]bench.Figure, error) {
	var list []LadderRow
	for _, s := range steps {
		b.run.Progress("  the ladder: %s", s.name)
		j, err := runJob(ctx, on, l.ask(d.Name, s.strategy, s.epochs, s.set...), silent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		list = append(list, ladderRowOf(s.name, j, float64(stepsOf(d, l))))
	}
	b.report.Ladder = list
	title := fmt.Sprintf("LeapGNN's ladder (slots) on %d nodes: %d vertices of width %d; %s", b.run.Nodes, d.Vertices, d.Features, l)
	if err := ladderChart(list, title).Draw(b.run.Plot); err != nil {
		return nil, err
	}
	centric, apart, together, merged := list[0], list[1], list[2], list[4]
	return []bench.Figure{
		bench.Against("rows that leave their node in a step, +pre-gathering", "rows", together.Remote, "centric", centric.Remote, bench.Most(1)),
		bench.Against("and beside groups that ask for themselves", "rows", together.Remote, "+micrographs", apart.Remote, bench.Most(1)),
		bench.Against("rows of +merging to one slot", "rows", merged.Remote, "+pre-gathering", together.Remote, bench.Exactly(1)),
		bench.Against("requests of +merging to one slot", "requests", merged.Requests, "+pre-gathering", together.Requests, bench.Exactly(1)),
		bench.Against("share of rows that are local, +micrographs", "%", 100*apart.LocalShare, "centric", 100*centric.LocalShare, bench.Bar{Text: "above 1x", Holds: func(r float64) bool { return r > 1 }}),
	}, nil
}

// ladderRowOf returns what the last epoch sent and how long the measured ones took.
func ladderRowOf(name string, j api.Job, steps float64) LadderRow {
	e := j.History[len(j.History)-1]
	return LadderRow{
		Name: name, Slots: max(1, e.Slots), Requests: float64(e.Requests.Feature) / steps, Remote: float64(e.Rows.Remote) / steps,
		LocalShare: float64(e.Rows.Local) / float64(e.Rows.Local+e.Rows.Remote),
		Feature:    float64(e.Bytes.Feature) / steps, Model: float64(e.Bytes.Model) / steps, Seconds: medianEpoch(j),
	}
}

// A ColumnRow is one step of p3's ladder. Bytes are of all nodes together and of a training
// step, on average over an epoch.
type ColumnRow struct {
	Name       string  `json:"name"`
	Feature    float64 `json:"feature_bytes"`
	Topology   float64 `json:"topology_bytes"`
	Activation float64 `json:"activation_bytes"`
	Model      float64 `json:"model_bytes"`
	Gradient   float64 `json:"gradient_bytes"`
	Behind     int     `json:"updates_behind"` // weights of first layers, at most
	Seconds    float64 `json:"epoch_seconds"`  // median
}

// runColumnLadder trains each step of p3's ladder.
func runColumnLadder(ctx context.Context, b *suite, on host, d api.Dataset, l load, steps []ladderStep) ([]bench.Figure, error) {
	var list []ColumnRow
	for _, s := range steps {
		b.run.Progress("  the ladder of p3: %s", s.name)
		j, err := runJob(ctx, on, l.ask(d.Name, s.strategy, s.epochs, s.set...), silent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		list = append(list, columnRowOf(s.name, j, float64(stepsOf(d, l))))
	}
	b.report.Columns = list
	centric, published, owners, drawn, three := list[0], list[1], list[2], list[3], list[4]
	return []bench.Figure{
		bench.Against("feature bytes of p3 in a step", "MB", published.Feature/1e6, "centric", centric.Feature/1e6, bench.Bar{Text: "exactly 0x", Holds: func(r float64) bool { return r <= 0 }}),
		bench.Against("activation bytes in a step, +roots=grain", "MB", owners.Activation/1e6, "p3", published.Activation/1e6, bench.Most(1)),
		bench.Against("bytes of edges in a step, +push=resample", "MB", drawn.Topology/1e6, "+roots=grain", owners.Topology/1e6, bench.Bar{Text: "exactly 0x", Holds: func(r float64) bool { return r <= 0 }}),
		bench.Against("activation bytes in a step, +inflight=3", "MB", three.Activation/1e6, "+push=resample", drawn.Activation/1e6, bench.Exactly(1)),
		{
			Name: "updates that weights are behind, +inflight=3", Value: float64(three.Behind), Unit: "updates", Bar: "at most 2 updates",
			Holds: three.Behind <= 2 && drawn.Behind == 0,
		},
	}, nil
}

// columnRowOf returns what the last epoch sent and how long the measured ones took.
func columnRowOf(name string, j api.Job, steps float64) ColumnRow {
	e := j.History[len(j.History)-1]
	return ColumnRow{
		Name: name, Feature: float64(e.Bytes.Feature) / steps, Topology: float64(e.Bytes.Topology) / steps, Activation: float64(e.Bytes.Activation) / steps,
		Model: float64(e.Bytes.Model) / steps, Gradient: float64(e.Bytes.Gradient) / steps, Behind: e.Behind, Seconds: medianEpoch(j),
	}
}
