package build

import (
	"context"
	"sync"
	"sync/atomic"
)

// parallel runs work on several goroutines, which share the numbers 0 to n-1, and waits
// for all of them. The first error stops them. next returns false once ctx is done.
func parallel(ctx context.Context, workers, n int, work func(ctx context.Context, next func() (int, bool)) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var taken atomic.Int64
	next := func() (int, bool) {
		i := int(taken.Add(1)) - 1
		return i, i < n && ctx.Err() == nil
	}
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			if err := work(ctx, next); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
