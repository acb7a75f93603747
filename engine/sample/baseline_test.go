package sample_test

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/sample/baseline"
)

// BenchmarkYardstick holds the sampler against the same in C++.
func BenchmarkYardstick(b *testing.B) {
	t, err := sample.NewTopology(sample.RMAT(b, 1<<20, 1<<24))
	if err != nil {
		b.Fatal(err)
	}
	w, err := baseline.Build(b.Context(), t)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	roots := make([]uint32, t.Vertices())
	for v := range roots {
		roots[v] = uint32(v)
	}
	sample.Order(1, 1, roots)
	for _, fanouts := range [][]int{{25, 10}, {15, 10, 5}} {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/threads=%d", fanouts, threads), func(b *testing.B) {
				work := baseline.Work{Fanouts: fanouts, Seed: 1, Epoch: 1, Roots: roots[:1<<15], Batch: 1024, Threads: threads}
				c, err := baseline.Compare(b.Context(), w, work, b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(c.Ours/1e6, "Medges/s")
				b.ReportMetric(c.Theirs/1e6, "theirs/s")
				b.ReportMetric(c.Ratio, "ratio")
				b.ReportMetric(float64(c.Disturbed), "disturbed")
			})
		}
	}
}
