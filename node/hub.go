package node

import (
	"context"
	"sync"
)

// A hub passes values to whoever listens. A slow listener loses values; the
// sender never waits.
type hub[T any] struct {
	mu        sync.Mutex
	listeners map[chan T]struct{}
}

func (h *hub[T]) send(v T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		select {
		case c <- v:
		default:
		}
	}
}

// listen returns a channel that is closed when ctx ends.
func (h *hub[T]) listen(ctx context.Context) <-chan T {
	c := make(chan T, 256)
	h.mu.Lock()
	if h.listeners == nil {
		h.listeners = map[chan T]struct{}{}
	}
	h.listeners[c] = struct{}{}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners, c)
		close(c)
	})
	return c
}
