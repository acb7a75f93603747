// Package ongoing lets requests end with the node: what is under way is cancelled and
// waited for when the node stops, while the parts that it needs still work.
package ongoing

import (
	"context"
	"errors"
	"sync"
)

// ErrStopping is the cause with which requests are cancelled when the node stops.
var ErrStopping = errors.New("this node is stopping, so what it was doing was given up; of an import, nothing is left")

// Group is the requests under way. The zero value is ready.
type Group struct {
	mu     sync.Mutex
	closed bool
	cancel map[*context.CancelCauseFunc]struct{}
	wg     sync.WaitGroup
}

// Begin returns a context that ends with the group. done is called when the request has
// ended, with all it started. Begin fails with ErrStopping once the group has ended.
func (g *Group) Begin(ctx context.Context) (during context.Context, done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, ErrStopping
	}
	during, cancel := context.WithCancelCause(ctx)
	if g.cancel == nil {
		g.cancel = map[*context.CancelCauseFunc]struct{}{}
	}
	g.cancel[&cancel] = struct{}{}
	g.wg.Add(1)
	return during, func() {
		cancel(nil)
		g.mu.Lock()
		delete(g.cancel, &cancel)
		g.mu.Unlock()
		g.wg.Done()
	}, nil
}

// EndWith waits until ctx ends, then cancels all requests and waits for them.
func (g *Group) EndWith(ctx context.Context) error {
	<-ctx.Done()
	g.mu.Lock()
	g.closed = true
	for cancel := range g.cancel {
		(*cancel)(ErrStopping)
	}
	g.mu.Unlock()
	g.wg.Wait()
	return nil
}
