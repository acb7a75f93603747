package bench

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
)

// A Rung is one way of LeapGNN's ladder. Counts are of all nodes together and of a step,
// on average over an epoch.
type Rung struct {
	Name       string  `json:"name"`
	Slots      int     `json:"slots"`
	Requests   float64 `json:"requests"` // for features
	Remote     float64 `json:"remote_rows"`
	LocalShare float64 `json:"local_share"` // of all input rows
	Feature    float64 `json:"feature_bytes"`
	Model      float64 `json:"model_bytes"`
	Seconds    float64 `json:"epoch_seconds"` // median
}

// climb trains on each rung of the ladder.
func (b *bench) climb(ctx context.Context, on host, d api.Dataset, l load, rungs []step) ([]Figure, error) {
	var list []Rung
	for _, s := range rungs {
		b.note("  the ladder: %s", s.name)
		j, err := trained(ctx, on, l.ask(d.Name, s.strategy, s.epochs, s.set...), silent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		list = append(list, rungOf(s.name, j, float64(stepsOf(d, l))))
	}
	b.report.Ladder = list
	if err := plot(b.cfg.Plot, list, fmt.Sprintf("LeapGNN's ladder on %d nodes: %d vertices of width %d; %s", b.cfg.Nodes, d.Vertices, d.Features, l)); err != nil {
		return nil, err
	}
	centric, apart, together, merged := list[0], list[1], list[2], list[4]
	equal := func(r float64) bool { return r == 1 }
	return []Figure{
		against("rows that leave their node in a step, +pre-gathering", "rows", together.Remote, "centric", centric.Remote, "at most 1x", func(r float64) bool { return r <= 1 }),
		against("and beside groups that ask for themselves", "rows", together.Remote, "+micrographs", apart.Remote, "at most 1x", func(r float64) bool { return r <= 1 }),
		against("rows of +merging to one slot", "rows", merged.Remote, "+pre-gathering", together.Remote, "exactly 1x", equal),
		against("requests of +merging to one slot", "requests", merged.Requests, "+pre-gathering", together.Requests, "exactly 1x", equal),
		against("share of rows that are at hand, +micrographs", "%", 100*apart.LocalShare, "centric", 100*centric.LocalShare, "above 1x", func(r float64) bool { return r > 1 }),
	}, nil
}

// rungOf is what the last epoch sent, and how long the measured ones took.
func rungOf(name string, j api.Job, steps float64) Rung {
	e := j.History[len(j.History)-1]
	return Rung{
		Name: name, Slots: max(1, e.Slots), Requests: float64(e.Requests.Feature) / steps, Remote: float64(e.Rows.Remote) / steps,
		LocalShare: float64(e.Rows.Local) / float64(e.Rows.Local+e.Rows.Remote),
		Feature:    float64(e.Bytes.Feature) / steps, Model: float64(e.Bytes.Model) / steps, Seconds: usual(j),
	}
}

// usual is the median time of a job's measured epochs, in seconds.
func usual(j api.Job) float64 {
	var seconds []float64
	for _, e := range j.History[len(j.History)-measured:] {
		seconds = append(seconds, e.Seconds)
	}
	return median(seconds)
}
