package node

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/peers"
)

// flagModel marks a question for a piece of a job's checkpoint, of kind Model.
const flagModel = peers.Flag + 1

// serveBulk registers who answers what other nodes ask for in bulk. Questions of one
// kind are told apart by their flags, here and nowhere else.
func (m *member) serveBulk() {
	for _, kind := range peers.Kinds() {
		m.mesh.HandleBulk(kind, func(ctx context.Context, r *mesh.Request) error {
			switch {
			case r.Flags == peers.Flag:
				return m.peers.Serve(ctx, r.Peer, r.Header, r)
			case r.Flags == flagModel && kind == mesh.Model:
				return m.serveModel(ctx, r)
			case r.Flags == 0 && kind == mesh.Shard:
				return m.keeper.Serve(ctx, r.Peer, r.Length, r)
			}
			return fmt.Errorf("%w: %s with flags %x", mesh.ErrProtocol, kind, r.Flags)
		})
	}
}

// jobPeers opens a job's session in its generation, for the runner.
func (m *member) jobPeers(j plan.Job, names []string, self int) (strategy.Peers, func(cause error)) {
	s := m.peers.Open(j.Key, j.Generation, j.Nodes, names, self)
	return s, s.Close
}
