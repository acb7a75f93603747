package generate

import (
	"context"
	"runtime"
	"sync"
)

// makers bounds the number of goroutines that prepare batches ahead.
const makers = 2

// inOrder yields batches 0 to count-1 in order while others are prepared ahead. Each
// buffer alternates between fill and yield. It returns yield's error or the context's
// cause, after every goroutine it started has ended.
func inOrder[B any](ctx context.Context, count uint64, buffer func() B, fill func(uint64, B) B, yield func(B) error) error {
	workers := uint64(max(1, min(makers, runtime.GOMAXPROCS(0))))
	ready := make([]chan B, workers)
	free := make([]chan B, workers)
	stop := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	for w := range workers {
		ready[w], free[w] = make(chan B, 2), make(chan B, 2)
		free[w] <- buffer()
		free[w] <- buffer()
		running.Go(func() {
			for i := w; i < count; i += workers {
				select {
				case b := <-free[w]:
					ready[w] <- fill(i, b) // never blocks: there are two buffers
				case <-stop:
					return
				}
			}
		})
	}
	for i := range count {
		select {
		case b := <-ready[i%workers]:
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := yield(b); err != nil {
				return err
			}
			free[i%workers] <- b
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx)
}
