package limit

import (
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

const (
	lineBytes = 64
	callBytes = 1 << 20 // read by one kernel call
)

// Gather reads reads whole rows of x at random on several threads, and returns the bytes
// per second with the best prefetch distance. It only adds them up. Rows are read in
// lines of 64 bytes, so slightly more is read of odd rows than is counted.
func Gather(x tensor.Matrix, reads, threads int) float64 {
	size := x.Type.Bytes()
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	lines := (x.Cols*size + lineBytes - 1) / lineBytes
	// Do not read beyond the last element.
	beyond := lines*lineBytes - x.Cols*size
	rows := x.Rows - (beyond+x.Stride*size-1)/(x.Stride*size)
	if rows <= 0 || reads < threads {
		return 0
	}
	each := reads / threads
	indices := make([][]int32, threads)
	for t := range indices {
		random := rand.New(rand.NewPCG(1, uint64(t)))
		indices[t] = make([]int32, each+farthest)
		for i := range indices[t] {
			indices[t][i] = int32(random.Uint32N(uint32(rows)))
		}
	}
	best := 0.0
	for _, bytes := range []int{4 << 10, 8 << 10, 16 << 10, 32 << 10} {
		ahead := min(max(bytes/(lines*lineBytes), 2), farthest)
		took := onAll(threads, func(t int) {
			step := max(1, callBytes/(lines*lineBytes))
			for at := 0; at < each; at += step {
				read(x, indices[t][at:], min(step, each-at), lines, ahead)
			}
		})
		best = max(best, float64(each*threads)*float64(x.Cols*size)/took.Seconds())
	}
	return best
}

// farthest is the maximum prefetch distance in rows.
const farthest = 128

func onAll(threads int, work func(thread int)) time.Duration {
	var all sync.WaitGroup
	start := time.Now()
	for t := range threads {
		all.Go(func() { work(t) })
	}
	all.Wait()
	return time.Since(start)
}

// sink keeps the compiler from optimising the reads away.
var sink struct {
	sync.Mutex
	sum float32
}

// Copy copies one matrix to another of the same size, both without gaps, in one part per
// thread, and returns the bytes copied per second.
func Copy(to, from tensor.Matrix, threads int) float64 {
	n := from.Rows * from.Cols * from.Type.Bytes()
	if n == 0 || to.Rows*to.Cols*to.Type.Bytes() != n {
		return 0
	}
	a := unsafe.Slice((*byte)(to.Base()), n)
	b := unsafe.Slice((*byte)(from.Base()), n)
	best := 0.0
	for range 3 {
		took := onAll(threads, func(t int) {
			first, last := n/threads*t, n/threads*(t+1)
			if t == threads-1 {
				last = n
			}
			// In pieces, so that garbage collection does not wait long.
			for at := first; at < last; at += callBytes {
				copy(a[at:min(at+callBytes, last)], b[at:])
			}
		})
		best = max(best, float64(n)/took.Seconds())
	}
	return best
}
