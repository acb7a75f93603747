package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Share trains on that many nodes of a mesh in this process. Each node has its share of
// the shards and no others. They use leap if the recipe names no strategy.
func Share(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, nodes int) (train.Result, error) {
	if nodes < 2 {
		return train.Run(ctx, r, shards, train.Options{Strategies: strategies.All})
	}
	if len(shards) < nodes {
		return train.Result{}, fmt.Errorf("the graph has %d shards, too few for %d nodes", len(shards), nodes)
	}
	if r.Sharing.Strategy == "" {
		r.Sharing.Strategy = "leap"
	}
	work := peer.Work{Owners: make([]int, len(shards))}
	for i := range shards {
		work.Owners[i] = i * nodes / len(shards)
	}
	for i := range nodes {
		work.Nodes = append(work.Nodes, fmt.Sprintf("node %d", i+1))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	net := loopback.New(nodes)
	results, errs := make([]train.Result, nodes), make([]error, nodes)
	var running sync.WaitGroup
	for self := range nodes {
		held := make([]*graph.Shard, len(shards))
		for i, owner := range work.Owners {
			if owner == self {
				held[i] = shards[i]
			}
		}
		own := work
		own.Self = self
		running.Go(func() {
			results[self], errs[self] = train.Run(ctx, r, held, train.Options{Peers: net.Node(self), Work: own, Strategies: strategies.All})
			if errs[self] != nil {
				cancel(errs[self])
			}
		})
	}
	running.Wait()
	return results[0], errors.Join(errs...)
}
