package replica

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Shard fetches one that is not held here, with its edges, labels and marks, for the caller
// alone: the replica stays as it is. It has no features.
func (r *Replica) Shard(ctx context.Context, peers peer.Peers, work peer.Work, shard int, tally *peer.Tally) (*graph.Shard, error) {
	b := &bringing{
		peers: peers, work: work, held: make([]*graph.Shard, len(r.Shards)), o: Options{Tally: tally}, edges: true, want: wanted{edges: true, labels: true},
		sizes: r.sizes, of: map[int]*brought{},
	}
	owner := work.Owners[shard]
	err := b.askSkeleton(ctx, owner, shard)
	if err == nil {
		err = r.same(b.of[shard].skeleton, shard)
	}
	if err != nil {
		return nil, fmt.Errorf("bring shard %d of node %s: %w", shard, work.Nodes[owner], err)
	}
	return b.of[shard].skeleton.Shard, nil
}

// same returns an error unless a skeleton is of the shard that the replica knows.
func (r *Replica) same(k *graph.Skeleton, shard int) error {
	s, known := k.Shard, r.Shards[shard]
	edges := r.sizes[shard].Edges
	if s.First != known.First || s.Vertices != known.Vertices || s.Total != known.Total || s.Classes != known.Classes || k.Edges != edges || int64(len(s.Indices)) != edges || len(s.Marks) != r.splits(shard) {
		return fmt.Errorf("what came has %d vertices and %d edges, and the shard %d and %d", s.Vertices, k.Edges, known.Vertices, edges)
	}
	return nil
}

// Edges returns how many each shard has.
func (r *Replica) Edges() []int {
	all := make([]int, len(r.Shards))
	for shard, s := range r.Shards {
		all[shard] = len(s.Indices)
		if of := r.Summaries[shard]; of != nil {
			all[shard] = int(of.Edges)
		}
	}
	return all
}
