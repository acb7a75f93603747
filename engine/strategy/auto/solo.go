package auto

import (
	"errors"
	"slices"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// solo deals whole batches to one node. The others add nothing to its gradients, and make the
// same updates.
type solo struct {
	*deal.Alone

	node int
}

// dealSolo returns the dealer of strategy single among several nodes: one that holds all shards
// computes everything. Of several such nodes it is the most powerful one.
func dealSolo(l peer.Layout, s strategy.Settings) (deal.Dealer, error) {
	node, power := -1, uint64(0)
	for n := range l.Nodes {
		p := uint64(1)
		if len(l.Weights) > 0 {
			p = l.Weights[n]
		}
		if holdsAll(&l, n) && (node < 0 || p > power) {
			node, power = n, p
		}
	}
	if node < 0 {
		return nil, errors.New("no node holds all shards")
	}
	return &solo{deal.NewAlone(&l, s.Deterministic), node}, nil
}

// holdsAll reports whether a node owns each shard or holds a copy of it.
func holdsAll(l *peer.Layout, node int) bool {
	for shard, owner := range l.Owners {
		if owner != node && (len(l.Holders) == 0 || !slices.Contains(l.Holders[shard], node)) {
			return false
		}
	}
	return true
}

// Deal implements deal.Dealer.
func (d *solo) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	if node != d.node {
		return to[:0]
	}
	return d.Alone.Deal(to, batch, node)
}
