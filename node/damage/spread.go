package damage

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

const (
	// call carries what a node tells of itself.
	call = "damage"
	// repeatEvery is how often a node repeats what it told, while there is something to tell:
	// others may have started since, or have missed it.
	repeatEvery = 10 * time.Second
	sendTimeout = 2 * time.Second
)

// Mesh is what boards need of the mesh.
type Mesh interface {
	ID() string
	Members() []mesh.Member
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
}

// Serve lets other nodes tell what is damaged on them.
func (b *Board) Serve(m Mesh) {
	m.Handle(call, func(_ context.Context, peer string, body []byte) ([]byte, error) {
		list, err := decode(body)
		if err != nil {
			return nil, mesh.Refuse("invalid", "a report of damage can't be read: %v", err)
		}
		b.hear(peer, list)
		return nil, nil
	})
}

// Run tells the other nodes what is damaged on this one, until ctx ends. A node that has nothing
// to tell sends nothing.
func (b *Board) Run(ctx context.Context, m Mesh) error {
	tick := time.NewTicker(repeatEvery)
	defer tick.Stop()
	told := false
	for {
		// The last report is empty: it takes the one before it back.
		if own := b.Own(); len(own) > 0 || told {
			b.send(ctx, m, own)
			told = len(own) > 0
		}
		select {
		case <-b.changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *Board) send(ctx context.Context, m Mesh, own []Entry) {
	body, err := json.Marshal(own)
	if err != nil {
		b.log.Warn("could not tell others of damage", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range m.Members() {
		if p.ID == m.ID() || p.Status != mesh.Alive {
			continue
		}
		wg.Go(func() {
			if _, err := m.Call(ctx, p.ID, call, body); err != nil {
				b.log.Debug("tell a node of damage", "peer", p.ID, "err", err)
			}
		})
	}
	wg.Wait()
}
