package partition

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxWorkers bounds the goroutines of one partitioning, and with them their scratch memory.
const maxWorkers = 16

// crew runs loops over vertices on several goroutines. What a loop computes must depend
// on the vertex alone, not on the worker, the block or the other vertices' results: then
// the result is the same for any number of threads.
type crew struct {
	ctx     context.Context
	workers int
}

func newCrew(ctx context.Context, threads int) crew {
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return crew{ctx, min(threads, maxWorkers)}
}

// alone returns the same crew with one worker, for work that is itself run in parallel.
func (c crew) alone() crew { return crew{c.ctx, 1} }

// each calls work with blocks that cover [0, n) once, from goroutines numbered 0 to
// workers-1, and returns when all have ended. It skips the remaining blocks once the
// context is cancelled.
func (c crew) each(n, block int, work func(worker, from, to int)) {
	workers := min(c.workers, (n+block-1)/block)
	if workers <= 1 {
		for from := 0; from < n && c.ctx.Err() == nil; from += block {
			work(0, from, min(from+block, n))
		}
		return
	}
	var next atomic.Int64
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for c.ctx.Err() == nil {
				from := int(next.Add(int64(block))) - block
				if from >= n {
					return
				}
				work(w, from, min(from+block, n))
			}
		})
	}
	running.Wait()
}
