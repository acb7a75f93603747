package bench

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// placing imports a graph of about 1 GB on one node of three and takes the pace at
// which its shards reach the others, verified and on disk, beside what the
// transport alone moves.
func (b *bench) placing(ctx context.Context) (figures []Figure, err error) {
	f := fleet.New(filepath.Join(b.dir, "placing"), b.cfg.Version)
	defer func() { err = errors.Join(err, f.Stop()) }()
	for range 3 {
		if _, err := f.Launch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.Until(ctx, "three nodes are in", f.AllReady); err != nil {
		return nil, err
	}
	var paces, ceilings []float64
	for range placings {
		pace, err := place(ctx, f.Nodes[0].API())
		if err != nil {
			return nil, err
		}
		bulk, err := b.bulk(ctx)
		if err != nil {
			return nil, err
		}
		paces, ceilings = append(paces, pace), append(ceilings, bulk[0].Value)
	}
	return []Figure{against("placing 1 GB on three nodes", "GB/s", median(paces), "bulk throughput", median(ceilings),
		"at least 0.8x", func(r float64) bool { return r >= 0.8 })}, nil
}

// placings is how often it is taken, in turn with the yardstick; medians count.
const placings = 3

// place returns the pace in GB/s, of one dataset that is gone afterwards.
func place(ctx context.Context, on api.Backend) (float64, error) {
	var begin, end time.Time
	var bytes float64
	_, err := on.GenerateDataset(ctx, api.GenerateRequest{
		Name: "big", Kind: "rmat", Vertices: 1_000_000, Edges: 10_000_000, Features: 230,
		DatasetOptions: api.DatasetOptions{Partitioner: "random"},
	}, func(e api.DatasetEvent) {
		if e.Progress == nil || e.Progress.Stage != "placing shards" {
			return
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		end, bytes = time.Now(), float64(e.Progress.Total)
	})
	if err != nil {
		return 0, err
	}
	return bytes / 1e9 / end.Sub(begin).Seconds(), on.RemoveDataset(ctx, "big", false)
}
