package p3

import (
	"context"
	"sync"
)

// A turn makes steps do something in their order, though several goroutines prepare
// them at once: the offers of a step are dropped two steps later.
type turn struct {
	mu      sync.Mutex
	epoch   uint32
	next    int
	waiting []*Batch
}

// from sets the next step.
func (t *turn) from(epoch uint32, step int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.next = epoch, step
}

// await waits for the batch's turn.
func (t *turn) await(ctx context.Context, b *Batch) (epoch uint32, err error) {
	t.mu.Lock()
	epoch = t.epoch
	if t.next == b.step {
		t.mu.Unlock()
		return epoch, nil
	}
	t.waiting = append(t.waiting, b)
	t.mu.Unlock()
	select {
	case <-b.called:
		return epoch, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == b {
			last := len(t.waiting) - 1
			t.waiting[i], t.waiting = t.waiting[last], t.waiting[:last]
			break
		}
	}
	select {
	case <-b.called:
	default:
	}
	return epoch, context.Cause(ctx)
}

// pass wakes the next step.
func (t *turn) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	for i, w := range t.waiting {
		if w.step == t.next {
			last := len(t.waiting) - 1
			t.waiting[i], t.waiting = t.waiting[last], t.waiting[:last]
			w.called <- struct{}{}
			return
		}
	}
}
