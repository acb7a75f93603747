package build

import (
	"context"
	"sync"
	"sync/atomic"
)

// parallel runs work on several goroutines, which take the numbers from 0 to n from
// one counter, and waits for all. The first error stops them. next says no more once
// ctx ends.
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
