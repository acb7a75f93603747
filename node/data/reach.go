package data

import (
	"context"
	"errors"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

// addressPatience is how long a node of the plan may have no address: gossip may tell of it
// later than the plan does.
const addressPatience = 10 * time.Second

// reach puts a question to another node, and waits for a while until its address is known.
func reach(ctx context.Context, m Mesh, node string, q mesh.Question) ([]byte, error) {
	for begin, pause := time.Now(), 50*time.Millisecond; ; pause = min(2*pause, time.Second) {
		b, err := m.Fetch(ctx, node, q)
		if !errors.Is(err, mesh.ErrNoAddress) || time.Since(begin) >= addressPatience {
			return b, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
