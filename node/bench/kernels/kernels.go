// Package kernels measures the arithmetic of layers and the sampler on this machine's
// processor: products beside OpenBLAS, what follows edges beside reading rows at random,
// steps of training, and sampling beside the same algorithm in C++.
package kernels

import (
	"context"
	"io"

	"github.com/hopmesh/hopmesh/node/bench"
)

// Measure runs the suite of kernels.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	return bench.Measure(ctx, cfg, bench.Suite{Title: "Kernels", Parts: []bench.Part{
		{What: "products of matrices", Measure: products},
		{What: "means of neighbours", Measure: aggregations},
		{What: "steps of training", Measure: training},
	}}, &bench.Report{}, stdout, stderr)
}

// Sampler runs the suite of the sampler.
func Sampler(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	return bench.Measure(ctx, cfg, bench.Suite{Title: "Sampler", Parts: []bench.Part{{What: "sampling", Measure: sampling}}}, &bench.Report{}, stdout, stderr)
}
