package edges

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/edges/limit"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// BenchmarkAggregate is a mean over a uniform graph and an R-MAT one, in million
// edges a second of the process's own time, and relative to reading rows at random.
func BenchmarkAggregate(b *testing.B) {
	const scale, edges = 20, 15_700_000
	for _, even := range []bool{true, false} {
		g := recursive(scale, edges, even)
		for _, width := range []int{16, 64, 128, 256, 602} {
			b.Run(fmt.Sprintf("even=%t/width=%d", even, width), func(b *testing.B) {
				aggregates(b, g, width)
			})
		}
	}
}

func aggregates(b *testing.B, g *tensor.CSR, width int) {
	from, to := huge(b, width*4*g.Rows), huge(b, width*4*g.Rows)
	y := tensor.Over(tensor.F32, g.Rows, width, width, to)
	for _, kind := range []tensor.Type{tensor.F32, tensor.BF16} {
		x := tensor.Over(kind, g.Rows, width, width, from)
		for _, threads := range []int{1, 2} {
			for _, f := range families()[1:] {
				b.Run(fmt.Sprintf("%s/threads=%d/%s", kind, threads, f), func(b *testing.B) {
					pool := workers.New(threads)
					defer pool.Close()
					e := newOf(pool, f)
					most, own := 0.0, time.Duration(0)
					for b.Loop() {
						most = max(most, limit.Gather(x, 2_000_000, threads))
						start := cpuTime()
						e.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil)
						own += cpuTime() - start
					}
					rate := float64(b.N*g.Entries()*threads) / own.Seconds()
					b.ReportMetric(rate/1e6, "Medges/s")
					b.ReportMetric(rate*float64(width*kind.Bytes())/1e9, "GB/s")
					b.ReportMetric(most/1e9, "GB/s-limit")
				})
			}
		}
	}
}

// huge is memory as an arena's.
func huge(b *testing.B, bytes int) unsafe.Pointer {
	m, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	if err := syscall.Madvise(m, syscall.MADV_HUGEPAGE); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
	b.Cleanup(func() {
		if err := syscall.Munmap(m); err != nil {
			b.Error(err)
		}
	})
	return unsafe.Pointer(&m[0])
}

// cpuTime is what this process has had of the CPUs, which other load changes less
// than what a clock shows.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// recursive is an R-MAT graph with shuffled ids, or one of even degrees.
func recursive(scale uint, edges int, even bool) *tensor.CSR {
	random := rand.New(rand.NewPCG(3, 4))
	n := 1 << scale
	ids := random.Perm(n)
	list := make([]uint64, edges)
	for i := range list {
		from, to := random.IntN(n), random.IntN(n)
		if !even {
			from, to = 0, 0
			for range scale {
				p := random.Float64()
				from, to = from<<1, to<<1
				if p >= .76 {
					from |= 1
				}
				if p >= .57 && p < .76 || p >= .95 {
					to |= 1
				}
			}
			from, to = ids[from], ids[to]
		}
		list[i] = uint64(to)<<32 | uint64(from)
	}
	slices.Sort(list)
	g := &tensor.CSR{Rows: n, Cols: n, Indptr: make([]int64, n+1), Indices: make([]int32, edges)}
	for i, e := range list {
		g.Indptr[e>>32+1]++
		g.Indices[i] = int32(uint32(e))
	}
	for r := range n {
		g.Indptr[r+1] += g.Indptr[r]
	}
	return g
}
