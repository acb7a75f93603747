package kernels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/gemm/openblas"
	"github.com/hopmesh/hopmesh/node/bench"
)

// shapes are the products that are measured: those of layers of a sampled and of a whole
// graph, of wide features, of few classes, and a square one.
var shapes = [][3]int{{10_000, 128, 256}, {100_000, 256, 256}, {50_000, 602, 128}, {4_000, 100, 47}, {1024, 1024, 1024}}

// How long each product runs in a turn, and how many rounds there are.
const (
	roundTime = 200 * time.Millisecond
	rounds    = 3
)

// products compares our products of dense matrices with OpenBLAS', forward and both
// backward, on one thread and on all.
func products(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	library, err := openblas.Find()
	if err != nil {
		run.Progress("  %v: nothing is compared with it", err)
	}
	var theirs *openblas.Baseline
	if err == nil {
		if theirs, err = openblas.Build(ctx, library, run.Dir); err != nil {
			return nil, err
		}
	}
	var figures []bench.Figure
	for _, threads := range threadCounts() {
		f, err := productsOn(ctx, threads, theirs)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// threadCounts are one thread and all.
func threadCounts() []int { return slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) }

// productsOn measures all products on so many threads.
func productsOn(ctx context.Context, threads int, theirs *openblas.Baseline) (figures []bench.Figure, err error) {
	d := cpu.New(threads)
	defer d.Close()
	var ratios []float64
	for _, s := range shapes {
		for _, shape := range []tensor.Shape{tensor.NN, tensor.TN, tensor.NT} {
			p := openblas.Product{M: s[0], K: s[1], N: s[2], Shape: shape}
			f, err := product(ctx, d, p, threads, theirs)
			if err != nil {
				return nil, err
			}
			figures = append(figures, f)
			if theirs != nil {
				ratios = append(ratios, f.Ratio)
			}
		}
	}
	if len(ratios) == 0 {
		return figures, nil
	}
	bar := 0.95
	if threads > 1 {
		bar = 1
	}
	mean := stats.Geometric(ratios)
	return append(figures, bench.Figure{
		Name: fmt.Sprintf("products, %s: geometric mean over OpenBLAS", onThreads(threads)), Value: mean, Unit: "x",
		Bar: fmt.Sprintf("at least %.2fx", bar), Holds: mean >= bar,
	}), nil
}

func onThreads(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// product measures one product.
func product(ctx context.Context, d *cpu.Device, p openblas.Product, threads int, theirs *openblas.Baseline) (bench.Figure, error) {
	a, err := d.NewArena(4 * (p.M*p.K + p.M*p.N + p.K*p.N + 64))
	if err != nil {
		return bench.Figure{}, err
	}
	defer a.Close()
	x, y, w := a.Alloc(tensor.F32, p.M, p.K), a.Alloc(tensor.F32, p.M, p.N), a.Alloc(tensor.F32, p.K, p.N)
	for _, m := range []tensor.Matrix{x, y, w} {
		noise(m)
	}
	run := func() { d.MatMul(y, x, w, tensor.NN, false, nil) }
	switch p.Shape {
	case tensor.TN:
		run = func() { d.MatMul(w, x, y, tensor.TN, false, nil) }
	case tensor.NT:
		run = func() { d.MatMul(x, y, w, tensor.NT, false, nil) }
	}
	var our, their []float64
	for range rounds {
		our = append(our, p.Operations()/1e9/perRun(run).Seconds())
		if theirs != nil {
			took, err := theirs.Time(ctx, p, threads, roundTime)
			if err != nil {
				return bench.Figure{}, err
			}
			their = append(their, p.Operations()/1e9/took.Seconds())
		}
	}
	name := fmt.Sprintf("product %d x %d x %d %s, %s", p.M, p.K, p.N, [...]string{"NN", "TN", "NT"}[p.Shape], onThreads(threads))
	if theirs == nil {
		return bench.Figure{Name: name, Value: stats.Median(our), Unit: "GFLOP/s"}, ctx.Err()
	}
	return bench.Against(name, "GFLOP/s", stats.Median(our), "OpenBLAS", stats.Median(their), bench.Least(0.85)), ctx.Err()
}

// noise fills a matrix with numbers around 0: zeros would be faster than real features.
func noise(m tensor.Matrix) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, data := 0, m.F32(); i < len(data); i++ {
		data[i] = r.Float32() - 0.5
	}
}

// perRun returns the median time of the runs of a round, after one that does not count.
func perRun(run func()) time.Duration {
	run()
	var took []time.Duration
	for begin := time.Now(); len(took) < 3 || time.Since(begin) < roundTime; {
		at := time.Now()
		run()
		took = append(took, time.Since(at))
	}
	return stats.Median(took)
}
