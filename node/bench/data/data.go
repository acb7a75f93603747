// Package data measures how graphs come in: cuts beside METIS, imports beside a copy,
// placement beside the transport.
package data

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/transport"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	return bench.Measure(ctx, cfg, bench.Suite{Title: "Data", Parts: []bench.Part{
		{What: "cuts and their balance", Measure: cuts},
		{What: "cuts beyond memory", Measure: beyond},
		{What: "cutting in a stream, within a bound of memory", Measure: stream},
		{What: "importing", Measure: importing},
		{What: "placing shards", Measure: placing},
	}}, &bench.Report{}, stdout, stderr)
}

// placing generates a graph of about 1 GB on one node of three and measures how fast its
// shards reach the others, verified and on disk, beside the transport alone.
func placing(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	f := fleet.New(filepath.Join(run.Dir, "placing"), run.Version)
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
		bulk, err := transport.Bulk(ctx, run)
		if err != nil {
			return nil, err
		}
		paces, ceilings = append(paces, pace), append(ceilings, bulk[0].Value)
	}
	return []bench.Figure{bench.Against("placing 1 GB on three nodes", "GB/s", stats.Median(paces), "bulk throughput", stats.Median(ceilings),
		bench.Least(0.8))}, nil
}

// placings is how often it is measured, in turn with the baseline; medians count.
const placings = 3

// place returns the pace in GB/s of one dataset, and removes it.
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
