package bench

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
	"github.com/hopmesh/hopmesh/engine/train"
)

// training trains GraphSAGE on sampled neighbours of a made-up graph, and tells
// where the time of an epoch goes and what memory it takes beside the shards.
func (b *bench) training(ctx context.Context) (figures []Figure, err error) {
	shards, err := b.shards(ctx, generate.Options{Preset: "products", Scale: 0.1, Seed: 1}, "training")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(shards)) }()
	for _, hidden := range []int{64, 256} {
		f, err := b.trainOnce(ctx, shards, hidden)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

func (b *bench) trainOnce(ctx context.Context, shards []*graph.Shard, hidden int) ([]Figure, error) {
	spec := nn.Defaults("sage")
	spec.Layers, spec.Hidden, spec.Dropout, spec.InputDropout = 3, hidden, 0, 0
	r := train.DefaultRecipe("sage")
	r.Model, r.Rate, r.Epochs, r.EvalEvery, r.Batch, r.Fanouts, r.Features = spec, 0.003, 4, 4, 1024, []int{15, 10, 5}, "none"
	debug.FreeOSMemory()
	before, err := peakMB(os.Getpid())
	if err != nil {
		return nil, err
	}
	// The kernel begins its peak anew.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.note("  the peak of memory can't be measured here: %v", err)
		before = 0
	}
	var forecast train.Forecast
	var last train.Epoch
	var heap [2]runtime.MemStats
	_, err = train.Run(ctx, r, shards, train.Options{
		Announce: func(f train.Forecast) { forecast = f },
		Report: func(e train.Epoch) {
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
	peak, err := peakMB(os.Getpid()) // the exact evaluation's, too
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("GraphSAGE 15, 10, 5, batch 1024, hidden %d", hidden)
	p := last.Phases
	figures := []Figure{
		{Name: name + ": a step", Value: 1e3 * last.Seconds / float64(last.Steps), Unit: "ms"},
		{Name: name + ": of that, computing", Value: 1e3 * p.Compute / float64(last.Steps), Unit: "ms"},
		{Name: name + ": waiting for samples", Value: 1e3 * p.Wait / float64(last.Steps), Unit: "ms"},
		{Name: name + ": beside it, sampling", Value: 1e3 * p.Sample / float64(last.Steps), Unit: "ms"},
		{Name: name + ": and gathering", Value: 1e3 * p.Gather / float64(last.Steps), Unit: "ms"},
		{Name: name + ": heap taken in an epoch", Value: float64(heap[1].TotalAlloc-heap[0].TotalAlloc) / 1e3, Unit: "KB"},
	}
	if before > 0 {
		announced := float64(forecast.Shards+forecast.Arenas) / 1e6
		figures = append(figures, against(name+": peak resident", "MB", peak, "shards and announced arenas", announced,
			"at most 1.3x", func(r float64) bool { return r <= 1.3 }))
	}
	return figures, nil
}

// shards cuts a graph that is made up, and opens it.
func (b *bench) shards(ctx context.Context, o generate.Options, name string) ([]*graph.Shard, error) {
	src, err := generate.New(o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, name)
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
