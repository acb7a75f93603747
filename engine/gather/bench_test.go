package gather

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// BenchmarkLay finds where the rows of 400,000 vertices are, one in ten of which is
// elsewhere, beside the same vertices only copied.
func BenchmarkLay(b *testing.B) {
	const total, wanted = 2_000_000, 400_000
	var shards []*graph.Shard
	for i := range 100 {
		n := total / 100
		shards = append(shards, &graph.Shard{
			Number: i, Shards: 100, First: uint32(i * n), Vertices: n, Total: total, Features: 1, DType: graph.F32, DenseRows: graph.DenseRows{Dense: make([]float32, n)},
		})
	}
	owners := make([]int, 100)
	for i := range 10 {
		owners[i*10] = 1
	}
	m := meshOf(b, shards, 2, owners, "none", "")
	all := m.some(rand.New(rand.NewPCG(1, 2)), wanted)
	for name, sets := range map[string][][]uint32{"one": {all}, "four": {all[:wanted/4], all[wanted/4 : wanted/2], all[wanted/2 : wanted*3/4], all[wanted*3/4:]}} {
		b.Run(name, func(b *testing.B) {
			var r Rows
			b.ReportAllocs()
			for b.Loop() {
				if err := m.sources[0].lay(&r, sets, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/wanted, "ns/vertex")
		})
	}
	b.Run("copy", func(b *testing.B) {
		to := make([]uint32, wanted)
		for b.Loop() {
			copy(to, all)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/wanted, "ns/vertex")
	})
}

// BenchmarkGather brings rows of 100 numbers from another node of this process.
func BenchmarkGather(b *testing.B) {
	const columns, n = 100, 50_000
	for _, remote := range []int{1000, n} {
		b.Run(fmt.Sprint(remote), func(b *testing.B) {
			var shards []*graph.Shard
			for i := range 2 {
				shards = append(shards, &graph.Shard{
					Number: i, Shards: 2, First: uint32(i * n), Vertices: n, Total: 2 * n, Features: columns, DType: graph.F32, DenseRows: graph.DenseRows{Dense: make([]float32, n*columns)},
				})
			}
			m := meshOf(b, shards, 2, []int{0, 1}, "none", "")
			var set []uint32
			for _, v := range rand.New(rand.NewPCG(1, 2)).Perm(n)[:remote] {
				set = append(set, uint32(n+v))
			}
			var r Rows
			var tally peer.Tally
			b.SetBytes(int64(4 * columns * remote))
			b.ReportAllocs()
			for b.Loop() {
				if err := m.sources[0].Gather(b.Context(), &r, [][]uint32{set}, 1, 0, Options{}, &tally); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
