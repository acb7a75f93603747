package data

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/partition"
	"github.com/hopmesh/hopmesh/node/bench"
)

// beyond cuts each graph as if it did not fit memory: from a file, in passes. The cut is
// compared with the multilevel one.
func beyond(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	list, err := graphs(run)
	if err != nil {
		return nil, err
	}
	list = append(list, large())
	var figures []bench.Figure
	for _, g := range list {
		for _, parts := range []int{8, many} {
			b, err := beyondOne(ctx, run, g, parts)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", g.name, err)
			}
			run.Progress("  %s", b)
			name := fmt.Sprintf("%s, %d parts, cut beyond memory", g.name, parts)
			figures = append(figures,
				bench.Against(name, "of all edges", b.streamed, "multilevel", b.multilevel, bench.Most(1.3)),
				bench.Figure{Name: name + ": memory", Value: float64(b.taken) / 1e6, Unit: "MB"},
				bench.Figure{Name: name + ": speed", Value: b.speed / 1e6, Unit: "M stored edges/s a core"})
		}
	}
	return figures, nil
}

// large is a planted graph that is large enough for its speed to count.
func large() named {
	o := generate.Options{Kind: "sbm", Vertices: 2_000_000, Edges: 30_000_000, Communities: 2000, Classes: 16, Inside: 0.9, Seed: 1}
	return named{"sbm, 30 M edges", func(context.Context) (graph.Source, error) { return generate.New(o) }}
}

// A cutBeyond compares a cut of a graph on disk with one of the same graph in memory.
type cutBeyond struct {
	name                 string
	parts                int
	streamed, multilevel float64 // shares of the edges
	heaviest             [3]float64
	taken, forecast      uint64  // bytes
	edges                uint64  // bytes of all neighbours, four each
	speed                float64 // stored edges per second of processor time, reading included
}

func (b cutBeyond) String() string {
	return fmt.Sprintf("%-17s %2d parts: cut %.4f, multilevel %.4f, %.2fx; balance %.3f; takes %.1f MB, forecast %.1f MB, an eighth of the edges %.1f MB; %.2f M stored edges/s a core",
		b.name, b.parts, b.streamed, b.multilevel, b.streamed/b.multilevel, b.heaviest, float64(b.taken)/1e6, float64(b.forecast)/1e6, float64(b.edges)/8e6, b.speed/1e6)
}

func beyondOne(ctx context.Context, run *bench.Run, of named, parts int) (b cutBeyond, err error) {
	src, err := of.open(ctx)
	if err != nil {
		return b, err
	}
	d, err := build.OnDisk(ctx, src, run.Dir)
	if err := errors.Join(err, src.Close()); err != nil {
		return b, err
	}
	defer d.Close()
	c := d.Constraints()
	o := partition.Options{Parts: parts, Seed: 1, Tolerance: tolerance[:c]}
	var ours []uint16
	begin := processor()
	b.taken = peakHeap(func() { ours, err = partition.Streaming(ctx, d, o) })
	took := (processor() - begin).Seconds()
	if err != nil {
		return b, err
	}
	g, err := d.Whole(ctx)
	if err != nil {
		return b, err
	}
	theirs, err := partition.Multilevel(ctx, g, o)
	if err != nil {
		return b, err
	}
	b.name, b.parts = of.name, parts
	all := float64(len(g.Indices)) / 2
	b.streamed, b.multilevel = cutOf(g, ours)/all, cutOf(g, theirs)/all
	stored := uint64(0)
	for v := range d.Vertices() {
		stored += uint64(g.Weights[int(v)*c+1])
	}
	for i := range c {
		b.heaviest[i] = balanceOf(g, ours, parts, i)
	}
	b.edges = 8 * d.HalfEdges()
	b.forecast = partition.StreamingMemory(d.Vertices(), d.HalfEdges(), parts, c) + d.BlockBytes()
	b.speed = float64(stored) / took
	return b, nil
}

// peakHeap runs f and returns the most that the heap held beyond what it held before.
// The collector runs early meanwhile, so that garbage hardly counts.
func peakHeap(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	held := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := held()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := before
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, held())
			case <-stop:
				peak <- max(most, held())
				return
			}
		}
	}()
	f()
	close(stop)
	return <-peak - before
}

// processor returns the processor time that this process took.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
