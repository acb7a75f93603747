package edges

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/edges/yardstick"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

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

// recursive is an R-MAT graph with shuffled ids, or one of even degrees.
func recursive(scale uint, edges int, even bool) *tensor.CSR {
	random := rand.New(rand.NewPCG(3, 4))
	n := 1 << scale
	ids := random.Perm(n)
	list := make([]uint64, edges)
	for i := range list {
		var from, to int
		if even {
			from, to = random.IntN(n), random.IntN(n)
		} else {
			for range scale {
				p := random.Float64()
				from, to = from<<1, to<<1
				switch {
				case p < .57:
				case p < .76:
					to |= 1
				case p < .95:
					from |= 1
				default:
					from, to = from|1, to|1
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

func env(name string, def int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return v
	}
	return def
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(0, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkX(b *testing.B) {
	const scale = 20
	for _, even := range []bool{true, false} {
		if env("EVEN", -1) >= 0 && (env("EVEN", -1) == 1) != even {
			continue
		}
		g := recursive(scale, 15_700_000, even)
		for _, d := range []int{16, 64, 128, 256, 602} {
			if env("D", d) != d {
				continue
			}
			base := huge(b, d*4<<scale+64)
			out := huge(b, d*4<<scale)
			x := tensor.Over(tensor.F32, 1<<scale, d, d, base)
			h := tensor.Over(tensor.BF16, 1<<scale, d, d, base)
			y := tensor.Over(tensor.F32, 1<<scale, d, d, out)
			for _, threads := range []int{1, 2} {
				pool := workers.New(threads)
				fams := []family.Family{family.AVX512, family.AVX2}
				best := map[string]float64{}
				for range env("N", 4) {
					l := yardstick.Gather(x, 4_000_000, threads)
					best["gather"] = max(best["gather"], l)
					l = yardstick.Gather(h, 4_000_000, threads)
					best["gather16"] = max(best["gather16"], l)
					for _, f := range fams {
						e := newOf(pool, f)
						t0 := time.Now()
						e.Aggregate(y, g, tensor.Matrix{}, x, tensor.Mean, false, nil)
						best["f32 "+f.String()] = max(best["f32 "+f.String()], float64(g.Entries()*4*d)/time.Since(t0).Seconds())
						t0 = time.Now()
						e.Aggregate(y, g, tensor.Matrix{}, h, tensor.Mean, false, nil)
						best["bf16 "+f.String()] = max(best["bf16 "+f.String()], float64(g.Entries()*2*d)/time.Since(t0).Seconds())
					}
				}
				fmt.Printf("even %t D %d threads %d: limit %.1f/%.1f GB/s;", even, d, threads, best["gather"]/1e9, best["gather16"]/1e9)
				for _, f := range fams {
					a, c := best["f32 "+f.String()], best["bf16 "+f.String()]
					fmt.Printf(" %s f32 %.1f GB/s = %.2f (%.1f Me/s), bf16 %.1f GB/s = %.2fx f32;", f, a/1e9, a/best["gather"], a/float64(4*d)/1e6, c/1e9, c*2/a)
				}
				fmt.Println()
				pool.Close()
			}
		}
	}
}
