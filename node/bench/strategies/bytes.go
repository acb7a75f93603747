package strategies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// Sent is what nodes sent each other in an epoch.
type Sent struct {
	Graph    string          `json:"graph"`
	Width    int             `json:"features"`
	Fanout   []int           `json:"fanout"`
	Batch    int             `json:"batch"`
	Strategy string          `json:"strategy"`
	Steps    int             `json:"steps"`
	Rows     api.JobRows     `json:"rows"`
	Requests api.JobRequests `json:"requests"`
	Bytes    api.JobBytes    `json:"bytes"`
}

// measureBytes counts what centric, leap and a sweep send, on nodes in this process.
func measureBytes(ctx context.Context, b *suite) (figures []bench.Figure, err error) {
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		busy, _, _ := strings.Cut(string(load), " ")
		b.report.note("in the minute before, %s threads wanted the machine's %d cores: times mean little on a busy machine", busy, runtime.NumCPU())
	}
	f := fleet.New(filepath.Join(b.run.Dir, "sent"), b.run.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range b.run.Nodes {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	on := f.Nodes[0].API()
	if figures, err = countBytes(ctx, b, on, graphSpecs, widths, byteCases); err != nil {
		return nil, err
	}
	swept, err := sweepBytes(ctx, b, on, graphSpecs[0].named(widths[0], 0), ladderLoad, sweptRates)
	return append(figures, swept...), err
}

// countBytes counts what centric and leap send on some graphs.
func countBytes(ctx context.Context, b *suite, on host, graphs []graphSpec, widths []int, loads []byteCase) (figures []bench.Figure, err error) {
	most := 0.0 // requests for features in a step
	for _, g := range graphs {
		for _, width := range widths {
			d, err := on.GenerateDataset(ctx, g.made(width, 0), func(api.DatasetEvent) {})
			if err != nil {
				return nil, err
			}
			for _, l := range loads {
				b.run.Progress("  %s of width %d: %s", g.name, width, l)
				var feature []float64
				for _, way := range []string{"centric", "leap"} {
					s, err := count(ctx, on, d, l.load, way)
					if err != nil {
						return nil, err
					}
					s.Graph = g.name
					b.report.Sent = append(b.report.Sent, s)
					feature = append(feature, float64(s.Bytes.Feature)/1e6)
					most = max(most, float64(s.Requests.Feature)/float64(s.Steps))
				}
				bar := 1.0
				if g.planted {
					bar = l.planted
				}
				figures = append(figures, bench.Against(fmt.Sprintf("feature bytes of leap, %s of width %d, fan-out %s, batch %d", g.name, width, l.hops(), l.batch),
					"MB", feature[1], "centric", feature[0], bench.Most(bar)))
			}
		}
	}
	owners := float64(b.run.Nodes * (b.run.Nodes - 1))
	return append(figures, bench.Against("requests for features in a step, at most", "requests", most, "each node one of each owner", owners, bench.Most(1))), nil
}

// count trains an epoch and returns what was sent.
func count(ctx context.Context, on host, d api.Dataset, l load, way string) (Sent, error) {
	j, err := runJob(ctx, on, l.ask(d.Name, way, 1), silent)
	if err != nil {
		return Sent{}, err
	}
	e := j.History[0]
	return Sent{
		Width: d.Features, Fanout: l.fanouts, Batch: l.batch, Strategy: way, Steps: stepsOf(d, l), Rows: e.Rows, Requests: e.Requests, Bytes: e.Bytes,
	}, nil
}

// sweepBytes counts the features that nodes send in a sweep over learning rates, beside
// those of a job for each of its models.
func sweepBytes(ctx context.Context, b *suite, on host, dataset string, l load, rates []string) ([]bench.Figure, error) {
	b.run.Progress("  %s: a sweep of %d learning rates", dataset, len(rates))
	whole := l.ask(dataset, "leap", 1)
	whole.Sweep = []api.Sweep{{Key: "lr", Values: rates}}
	swept, err := featureBytes(ctx, on, whole)
	if err != nil {
		return nil, err
	}
	var alone []float64
	for _, rate := range rates {
		one := l.ask(dataset, "leap", 1)
		lr, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			return nil, fmt.Errorf("the learning rate %s: %w", rate, err)
		}
		one.Rate = &lr
		bytes, err := featureBytes(ctx, on, one)
		if err != nil {
			return nil, err
		}
		alone = append(alone, bytes)
	}
	all := 0.0
	for _, bytes := range alone {
		all += bytes
	}
	name := fmt.Sprintf("feature bytes of a sweep of %d learning rates, %s, leap, fan-out %s, batch %d", len(rates), dataset, l.hops(), l.batch)
	return []bench.Figure{
		bench.Against(name, "MB", swept, "a job of one model", slices.Min(alone), bench.Most(1)),
		bench.Against(name, "MB", swept, "a job for each", all, bench.Bar{
			Text:  fmt.Sprintf("at most %gx", 1/float64(len(rates))),
			Holds: func(r float64) bool { return r*float64(len(rates)) <= 1 },
		}),
	}, nil
}

// featureBytes returns the megabytes of features that nodes send in a job of one epoch.
func featureBytes(ctx context.Context, on host, r api.TrainRequest) (float64, error) {
	j, err := runJob(ctx, on, r, silent)
	if err != nil {
		return 0, err
	}
	return float64(j.History[0].Bytes.Feature) / 1e6, nil
}
