package kernels

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/sample/baseline"
	"github.com/hopmesh/hopmesh/node/bench"
)

// sampling compares the sampler with the same algorithm in C++ on a graph with hubs, on
// one thread and on all.
func sampling(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	shards, err := open(ctx, run, generate.Options{Kind: "rmat", Vertices: benchVertices, Edges: benchVertices * benchDegree, Seed: 1}, "sampling")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(shards)) }()
	t, err := sample.NewTopology(shards)
	if err != nil {
		return nil, err
	}
	theirs, err := baseline.Build(ctx, t)
	if err != nil {
		run.Progress("  %v: nothing is compared with it", err)
	} else {
		defer func() { err = errors.Join(err, theirs.Close()) }()
	}
	const steps, batch = 64, 1024
	roots := make([]uint32, benchVertices)
	for v := range roots {
		roots[v] = uint32(v)
	}
	sample.Order(1, 0, roots)
	for _, fanouts := range [][]int{{25, 10}, {15, 10, 5}} {
		alone := 0.0
		for _, threads := range threadCounts() {
			work := baseline.Work{Fanouts: fanouts, Seed: 1, Roots: roots[:steps*batch*threads], Batch: batch, Threads: threads}
			name := fmt.Sprintf("sampling %v, batch %d, %s", fanouts, batch, onThreads(threads))
			f, err := samplingOne(ctx, t, theirs, work, name)
			if err != nil {
				return nil, err
			}
			if threads == 1 {
				alone = f.Value
			}
			figures = append(figures, f)
			if threads == 2 {
				figures = append(figures, bench.Against(name+", over 1", "M edges/s", f.Value, "1 thread", alone, bench.Least(1.8)))
			}
		}
	}
	return figures, nil
}

// samplingOne measures one case, beside the baseline where there is one.
func samplingOne(ctx context.Context, t *sample.Topology, theirs *baseline.Program, work baseline.Work, name string) (bench.Figure, error) {
	const bar = 30 // M edges/s a core
	if theirs == nil {
		r, err := baseline.Ours(t, work)
		return bench.Figure{Name: name, Value: r.Rate() / 1e6, Unit: "M edges/s"}, err
	}
	c, err := baseline.Compare(ctx, theirs, work, rounds)
	if err != nil {
		return bench.Figure{}, err
	}
	return bench.Against(name, "M edges/s", c.Ours/1e6, "the same in C++", c.Theirs/1e6, bench.Bar{
		Text:  fmt.Sprintf("at least %d M edges/s a core or 0.75x", bar),
		Holds: func(r float64) bool { return r >= 0.75 || c.Ours/1e6 >= bar*float64(work.Threads) },
	}), nil
}
