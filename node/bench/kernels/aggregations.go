package kernels

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/edges/limit"
	"github.com/hopmesh/hopmesh/node/bench"
)

// The graphs that aggregation and sampling are measured on.
const (
	benchVertices = 1 << 20
	benchDegree   = 16
	benchWidth    = 128
)

// aggregations compares means of neighbours' rows, of float32 and of BF16, with how fast
// this machine reads rows at random.
func aggregations(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	skewed, err := rmat(ctx)
	if err != nil {
		return nil, err
	}
	d := cpu.New(0)
	defer d.Close()
	const elements = benchVertices * benchWidth
	a, err := d.NewArena(10*elements + 1<<12)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	x, y := a.Alloc(tensor.F32, benchVertices, benchWidth), a.Alloc(tensor.F32, benchVertices, benchWidth)
	half := a.Alloc(tensor.BF16, benchVertices, benchWidth)
	noise(x)
	d.Combine(half, 1, x, 0, tensor.Matrix{})
	var figures []bench.Figure
	for _, threads := range threadCounts() {
		f := aggregateOn(threads, "uniform", uniform(), x, half, y, 0.9)
		figures = append(figures, f...)
		figures = append(figures, aggregateOn(threads, "R-MAT", skewed, x, half, y, 0)...)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// aggregateOn measures one graph. On a skewed one hubs stay in the cache, so that random
// reads are no limit: a bar of 0 is none.
func aggregateOn(threads int, name string, g *tensor.CSR, x, half, y tensor.Matrix, bar float64) []bench.Figure {
	d := cpu.New(threads)
	defer d.Close()
	var full, small, random []float64
	edges := float64(g.Entries()) / 1e6
	for range rounds {
		full = append(full, edges/perRun(func() { d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil) }).Seconds())
		small = append(small, edges/perRun(func() { d.Aggregate(y, g, tensor.Matrix{}, half, tensor.Mean, false, nil) }).Seconds())
		random = append(random, limit.Gather(x, g.Entries()/4, threads)/(4*benchWidth)/1e6)
	}
	title := fmt.Sprintf("mean of neighbours, %d columns, %s, %s", benchWidth, name, onThreads(threads))
	least := bench.Bar{Holds: func(float64) bool { return true }}
	if bar > 0 {
		least = bench.Least(bar)
	}
	return []bench.Figure{
		bench.Against(title+", f32", "M edges/s", stats.Median(full), "reading rows at random", stats.Median(random), least),
		bench.Against(title+", BF16", "M edges/s", stats.Median(small), "f32", stats.Median(full), bench.Least(1.3)),
	}
}

// uniform makes a graph whose vertices have fifteen neighbours each, anywhere.
func uniform() *tensor.CSR {
	const degree = benchDegree - 1
	r := rand.New(rand.NewPCG(5, 6))
	g := &tensor.CSR{Rows: benchVertices, Cols: benchVertices, Indptr: make([]int64, benchVertices+1), Indices: make([]int32, benchVertices*degree)}
	for i := range g.Indices {
		g.Indices[i] = int32(r.Uint32N(benchVertices))
	}
	for v := range g.Indptr {
		g.Indptr[v] = int64(v) * degree
	}
	return g
}

// rmat makes a graph with hubs, in no order.
func rmat(ctx context.Context) (*tensor.CSR, error) {
	src, err := generate.New(generate.Options{Kind: "rmat", Vertices: benchVertices, Edges: benchVertices * benchDegree, Seed: 1})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	g := &tensor.CSR{Rows: benchVertices, Cols: benchVertices, Indptr: make([]int64, benchVertices+1), Indices: make([]int32, benchVertices*benchDegree)}
	pass := func(each func(from, to uint32)) error {
		return src.Edges(ctx, func(e graph.EdgeBatch) error {
			for i, from := range e.Src {
				each(from, e.Dst[i])
			}
			return ctx.Err()
		})
	}
	if err := pass(func(_, to uint32) { g.Indptr[to+1]++ }); err != nil {
		return nil, err
	}
	for v := range benchVertices {
		g.Indptr[v+1] += g.Indptr[v]
	}
	next := append([]int64(nil), g.Indptr[:benchVertices]...)
	return g, pass(func(from, to uint32) {
		g.Indices[next[to]] = int32(from)
		next[to]++
	})
}
