package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"text/tabwriter"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/loopback"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// apart is how far a mean on several nodes may be from that on one, in points.
const apart = 0.3

var errApart = errors.New("a mean on several nodes is more than 0.3 points from that on one")

// share trains on so many nodes of a mesh in this process: each has its share of the
// shards and no others.
func share(ctx context.Context, r train.Recipe, shards []*graph.Shard, nodes int) (train.Result, error) {
	if nodes == 1 {
		return train.Run(ctx, r, shards, train.Options{})
	}
	if len(shards) < nodes {
		return train.Result{}, fmt.Errorf("the graph has %d shards, too few for %d nodes", len(shards), nodes)
	}
	r.Sharing.Strategy = strategy.Leap
	work := strategy.Work{Owners: make([]int, len(shards))}
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
			results[self], errs[self] = train.Run(ctx, r, held, train.Options{Peers: net.Node(self), Work: own, Strategies: []strategy.Strategy{leap.Strategy{}}})
			if errs[self] != nil {
				cancel(errs[self])
			}
		})
	}
	running.Wait()
	return results[0], errors.Join(errs...)
}

// compare prints the means of the seeds that were trained on one node and on several.
func (t task) compare(list []row, k *runs.Kept) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "GRAPH\tMODEL\tSEEDS\tONE NODE\t%d NODES\tAPART\t\n", t.nodes)
	var far error
	for _, r := range list {
		id, err := runs.Digest(r.Recipe)
		if err != nil {
			return err
		}
		alone, shared := k.Of(r.id(), id, 0), k.Of(r.id(), id, t.nodes)
		var one, many []float64
		for seed := range uint64(r.seeds) {
			a, there := alone[seed]
			b, too := shared[seed]
			if there && too {
				one, many = append(one, a.Test), append(many, b.Test)
			}
		}
		if len(one) == 0 {
			continue
		}
		mean, deviation := runs.Spread(one)
		meanToo, deviationToo := runs.Spread(many)
		verdict := "holds"
		if math.Abs(mean-meanToo) > apart {
			verdict, far = "APART", errApart
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d of %d\t%.2f ± %.2f\t%.2f ± %.2f\t%+.2f\t%s\n", r.graph, r.name, len(one), r.seeds, mean, deviation, meanToo, deviationToo, meanToo-mean, verdict)
	}
	return errors.Join(far, w.Flush())
}
