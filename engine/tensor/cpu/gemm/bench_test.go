package gemm

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// layers are products as layers of networks see them: vertices, columns in,
// columns out.
var layers = [][3]int{
	{10000, 128, 256}, {100000, 256, 256}, {50000, 602, 128}, {4000, 100, 47}, {1024, 1024, 1024},
	{2708, 16, 7}, {2708, 1433, 16}, {13752, 767, 64}, {20000, 64, 40}, {20000, 256, 47},
}

// BenchmarkProducts is forward (NN), the weights' gradient (TN) and the input's
// gradient (NT) of layers.
func BenchmarkProducts(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, l := range layers {
			m, k, n := l[0], l[1], l[2]
			x, w, y := zeros(m, k), zeros(k, n), zeros(m, n)
			for shape, args := range map[tensor.Shape][3]tensor.Matrix{
				tensor.NN: {y, x, w}, tensor.TN: {w, x, y}, tensor.NT: {x, y, w},
			} {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/%d", shapes[shape], m, k, n, threads), func(b *testing.B) {
					pool := workers.New(threads)
					defer pool.Close()
					g := New(pool)
					for b.Loop() {
						g.MatMul(args[0], args[1], args[2], shape, false, nil)
					}
					b.ReportMetric(2*float64(m)*float64(k)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(float64(family.Current()), "family")
				})
			}
		}
	}
}

func zeros(rows, columns int) tensor.Matrix {
	return tensor.OverF32(rows, columns, make([]float32, rows*columns))
}
