package member

import (
	"context"
	"sync"
	"time"
)

// gossip keeps the reports of gossip and of peers until they are acted on.
type gossip struct {
	changed chan struct{} // buffered: there is news

	mu sync.Mutex
	// reaped are the ids that gossip has forgotten since this node last led a round.
	reaped map[string]bool
	// awaited are the nodes whose answer a leader's round waits for. The wait ends once gossip
	// sees that the node has failed.
	awaited map[string]context.CancelFunc
	// refused records when each peer last refused this node.
	refused map[string]time.Time
}

func newGossip() *gossip {
	return &gossip{
		changed: make(chan struct{}, 1), reaped: map[string]bool{}, awaited: map[string]context.CancelFunc{}, refused: map[string]time.Time{},
	}
}

// nudge wakes the goroutine that waits for news.
func (g *gossip) nudge() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *gossip) reap(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reaped[id] = true
}

// takeReaped returns the ids that were reaped and forgets them.
func (g *gossip) takeReaped() map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := g.reaped
	g.reaped = map[string]bool{}
	return ids
}

// until calls stop when the node fails, unless over was called before.
func (g *gossip) until(id string, stop context.CancelFunc) (over func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.awaited[id] = stop
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.awaited, id)
	}
}

func (g *gossip) failed(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if stop, in := g.awaited[id]; in {
		stop()
	}
}

// refusalLasts is how long a peer's refusal counts. Peers repeat it at every attempt
// to connect.
const refusalLasts = time.Minute

// refuse records that a peer refuses this node, and returns the peers that did so
// recently.
func (g *gossip) refuse(peer string, now time.Time) map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[peer] = now
	lately := map[string]bool{}
	for id, at := range g.refused {
		if now.Sub(at) < refusalLasts {
			lately[id] = true
		} else {
			delete(g.refused, id)
		}
	}
	return lately
}
