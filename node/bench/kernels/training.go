package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/bench"
)

// training trains GraphSAGE on sampled neighbours of a generated graph, and measures where
// the time of an epoch goes and how much memory it takes beside the shards.
func training(ctx context.Context, run *bench.Run) (figures []bench.Figure, err error) {
	shards, err := open(ctx, run, generate.Options{Preset: "products", Scale: 0.1, Seed: 1}, "training")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(shards)) }()
	for _, hidden := range []int{64, 256} {
		f, err := trainOnce(ctx, run, shards, hidden)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// trainOnce trains a model with hidden rows of a width.
func trainOnce(ctx context.Context, run *bench.Run, shards []*graph.Shard, hidden int) ([]bench.Figure, error) {
	spec := nn.Defaults("sage")
	spec.Layers, spec.Hidden, spec.Dropout, spec.InputDropout = 3, hidden, 0, 0
	r := recipe.DefaultRecipe("sage")
	r.Model, r.Rate, r.Epochs, r.EvalEvery, r.Batch, r.Fanouts, r.Features = spec, 0.003, 4, 4, 1024, []int{15, 10, 5}, "none"
	debug.FreeOSMemory()
	before, err := bench.PeakMB(os.Getpid())
	if err != nil {
		return nil, err
	}
	// The kernel restarts its peak.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		run.Progress("  the peak of memory can't be measured here: %v", err)
		before = 0
	}
	var forecast train.Forecast
	var last trained.Epoch
	var heap [2]runtime.MemStats
	_, err = train.Run(ctx, r, shards, train.Options{Strategies: strategies.All,
		Announce: func(f train.Forecast) { forecast = f },
		Report: func(e trained.Epoch) {
			last = e
			if e.Epoch == 2 { // buffers have grown by then
				runtime.ReadMemStats(&heap[0])
			}
			if e.Epoch == 3 {
				runtime.ReadMemStats(&heap[1])
			}
		},
	})
	if err != nil {
		return nil, err
	}
	peak, err := bench.PeakMB(os.Getpid()) // the exact evaluation's, too
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("GraphSAGE 15, 10, 5, batch 1024, hidden %d", hidden)
	p := last.Phases
	figures := []bench.Figure{
		{Name: name + ": a step", Value: 1e3 * last.Seconds / float64(last.Steps), Unit: "ms"},
		{Name: name + ": of that, computing", Value: 1e3 * p.Compute / float64(last.Steps), Unit: "ms"},
		{Name: name + ": waiting for samples", Value: 1e3 * p.Wait / float64(last.Steps), Unit: "ms"},
		{Name: name + ": beside it, sampling", Value: 1e3 * p.Sample / float64(last.Steps), Unit: "ms"},
		{Name: name + ": and gathering", Value: 1e3 * p.Gather / float64(last.Steps), Unit: "ms"},
		{Name: name + ": heap taken in an epoch", Value: float64(heap[1].TotalAlloc-heap[0].TotalAlloc) / 1e3, Unit: "KB"},
	}
	if before > 0 {
		announced := float64(forecast.Shards+forecast.Arenas) / 1e6
		figures = append(figures, bench.Against(name+": peak resident", "MB", peak, "shards and announced arenas", announced,
			bench.Most(1.3)))
	}
	return figures, nil
}

// open generates a graph, cuts it and opens its shards.
func open(ctx context.Context, run *bench.Run, o generate.Options, name string) ([]*graph.Shard, error) {
	src, err := generate.New(o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(run.Dir, name)
	m, err := build.Run(ctx, src, build.Options{Dir: dir, Scratch: dir + ".scratch", Partitioner: "stream", DType: graph.F32})
	if err := errors.Join(err, src.Close()); err != nil {
		return nil, err
	}
	var list []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
		if err != nil {
			return nil, errors.Join(err, closeAll(list))
		}
		list = append(list, s)
	}
	return list, nil
}

func closeAll(list []*graph.Shard) error {
	var err error
	for _, s := range list {
		err = errors.Join(err, s.Close())
	}
	return err
}
