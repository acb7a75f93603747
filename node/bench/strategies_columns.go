package bench

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
)

// A ColumnRung is one way of p3's ladder. Bytes are of all nodes together and of a step,
// on average over an epoch.
type ColumnRung struct {
	Name       string  `json:"name"`
	Feature    float64 `json:"feature_bytes"`
	Topology   float64 `json:"topology_bytes"`
	Activation float64 `json:"activation_bytes"`
	Model      float64 `json:"model_bytes"`
	Gradient   float64 `json:"gradient_bytes"`
	Behind     int     `json:"updates_behind"` // weights of first layers, at most
	Seconds    float64 `json:"epoch_seconds"`  // median
}

// climbColumns trains on each rung of p3's ladder.
func (b *bench) climbColumns(ctx context.Context, on host, d api.Dataset, l load, rungs []step) ([]Figure, error) {
	var list []ColumnRung
	for _, s := range rungs {
		b.note("  the ladder of p3: %s", s.name)
		j, err := trained(ctx, on, l.ask(d.Name, s.strategy, s.epochs, s.set...), silent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		list = append(list, columnRungOf(s.name, j, float64(stepsOf(d, l))))
	}
	b.report.Columns = list
	centric, published, owners, drawn, three := list[0], list[1], list[2], list[3], list[4]
	most := func(limit float64) func(r float64) bool { return func(r float64) bool { return r <= limit } }
	return []Figure{
		against("feature bytes of p3 in a step", "MB", published.Feature/1e6, "centric", centric.Feature/1e6, "exactly 0x", most(0)),
		against("activation bytes in a step, +roots=grain", "MB", owners.Activation/1e6, "p3", published.Activation/1e6, "at most 1x", most(1)),
		against("bytes of edges in a step, +push=resample", "MB", drawn.Topology/1e6, "+roots=grain", owners.Topology/1e6, "exactly 0x", most(0)),
		against("activation bytes in a step, +inflight=3", "MB", three.Activation/1e6, "+push=resample", drawn.Activation/1e6, "exactly 1x", func(r float64) bool { return r == 1 }),
		{
			Name: "updates that weights are behind, +inflight=3", Value: float64(three.Behind), Unit: "updates", Bar: "at most 2 updates",
			Holds: three.Behind <= 2 && drawn.Behind == 0,
		},
	}, nil
}

// columnRungOf is what the last epoch sent, and how long the measured ones took.
func columnRungOf(name string, j api.Job, steps float64) ColumnRung {
	e := j.History[len(j.History)-1]
	return ColumnRung{
		Name: name, Feature: float64(e.Bytes.Feature) / steps, Topology: float64(e.Bytes.Topology) / steps, Activation: float64(e.Bytes.Activation) / steps,
		Model: float64(e.Bytes.Model) / steps, Gradient: float64(e.Bytes.Gradient) / steps, Behind: e.Behind, Seconds: usual(j),
	}
}
