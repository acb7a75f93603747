package mesh

import (
	"context"
	"fmt"
	"sync"
)

// generation holds the number of the current plan and the streams bound to it.
type generation struct {
	mu      sync.Mutex
	now     uint64
	moved   chan struct{} // closed and replaced when now grows
	streams map[*bound]struct{}
}

// bound is one stream that ends with its generation.
type bound struct {
	generation uint64
	end        func()
}

func (g *generation) init() {
	g.moved, g.streams = make(chan struct{}), map[*bound]struct{}{}
}

// SetGeneration sets the generation of the current plan. Streams of older generations
// are reset with CodeSuperseded; those that waited for this one proceed. The generation
// never goes back.
func (m *Mesh) SetGeneration(n uint64) {
	g := &m.current
	g.mu.Lock()
	if n <= g.now {
		g.mu.Unlock()
		return
	}
	g.now = n
	close(g.moved)
	g.moved = make(chan struct{})
	var stale []func()
	for b := range g.streams {
		if b.generation < n {
			stale = append(stale, b.end)
			delete(g.streams, b)
		}
	}
	g.mu.Unlock()
	for _, end := range stale {
		end()
	}
}

// enter binds a stream to its generation: end is called if a newer one comes before
// leave. A stream of a later generation waits until this node reaches it or ctx ends,
// because its sender may just have received the new plan first.
func (g *generation) enter(ctx context.Context, n uint64, end func()) (leave func(), err error) {
	if n == 0 {
		return func() {}, nil
	}
	for {
		g.mu.Lock()
		if n < g.now {
			g.mu.Unlock()
			return nil, ErrSuperseded
		}
		if n == g.now {
			b := &bound{generation: n, end: end}
			g.streams[b] = struct{}{}
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				delete(g.streams, b)
				g.mu.Unlock()
			}, nil
		}
		moved := g.moved
		g.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: a stream of generation %d, while this node is not that far", ErrOverload, n)
		}
	}
}
