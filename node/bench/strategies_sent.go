package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
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

// sent counts what centric, leap and a sweep send, on nodes in this process.
func (b *bench) sent(ctx context.Context) (figures []Figure, err error) {
	if said, err := os.ReadFile("/proc/loadavg"); err == nil {
		busy, _, _ := strings.Cut(string(said), " ")
		b.report.Notes = append(b.report.Notes, fmt.Sprintf("in the minute before, %s threads wanted the machine's %d cores: where others work, times say little", busy, runtime.NumCPU()))
	}
	f := fleet.New(filepath.Join(b.dir, "sent"), b.cfg.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range b.cfg.Nodes {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	on := f.Nodes[0].API()
	if figures, err = b.weigh(ctx, on, meadows, widths, weighings); err != nil {
		return nil, err
	}
	swept, err := b.sweep(ctx, on, meadows[0].named(widths[0], 0), climbed, sweptRates)
	return append(figures, swept...), err
}

func (b *bench) weigh(ctx context.Context, on host, graphs []meadow, widths []int, loads []weighing) (figures []Figure, err error) {
	most := 0.0 // requests for features in a step
	for _, g := range graphs {
		for _, width := range widths {
			d, err := on.GenerateDataset(ctx, g.made(width, 0), func(api.DatasetEvent) {})
			if err != nil {
				return nil, err
			}
			for _, l := range loads {
				b.note("  %s of width %d: %s", g.name, width, l)
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
				figures = append(figures, against(fmt.Sprintf("feature bytes of leap, %s of width %d, fan-out %s, batch %d", g.name, width, l.hops(), l.batch),
					"MB", feature[1], "centric", feature[0], fmt.Sprintf("at most %gx", bar), func(r float64) bool { return r <= bar }))
			}
		}
	}
	owners := float64(b.cfg.Nodes * (b.cfg.Nodes - 1))
	return append(figures, against("requests for features in a step, at most", "requests", most, "each node one of each owner", owners, "at most 1x",
		func(r float64) bool { return r <= 1 })), nil
}

// count trains an epoch.
func count(ctx context.Context, on host, d api.Dataset, l load, way string) (Sent, error) {
	j, err := trained(ctx, on, l.ask(d.Name, way, 1), silent)
	if err != nil {
		return Sent{}, err
	}
	e := j.History[0]
	return Sent{
		Width: d.Features, Fanout: l.fanouts, Batch: l.batch, Strategy: way, Steps: stepsOf(d, l), Rows: e.Rows, Requests: e.Requests, Bytes: e.Bytes,
	}, nil
}

// stepsOf is how many steps an epoch has.
func stepsOf(d api.Dataset, l load) int {
	return (int(d.SplitSizes[0].Train) + l.batch - 1) / l.batch
}
