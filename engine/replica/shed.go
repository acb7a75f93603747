package replica

import (
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Shed gives up the edges of all shards that are not held here: from then on the replica is as
// if it had been brought without them, and so is what a cache keeps, which may be nil. Nobody
// may read these edges meanwhile or afterwards: their files are gone.
func (r *Replica) Shed(held []*graph.Shard, cache *Cache) error {
	if !r.Replicated {
		return nil
	}
	r.Replicated, r.Bytes, r.Filed = false, 0, 0
	for i, s := range r.Shards {
		if held[i] != nil {
			continue
		}
		r.Summaries[i] = &sample.Summary{Edges: int64(len(s.Indices))}
		s.Shed()
		r.Bytes += 4*uint64(len(s.Labels)) + uint64(len(s.Marks)*s.Vertices)
		if of := r.Seeds[i]; of != nil {
			of.Training = of.Training.Clone() // it would keep the message with the edges
			r.Bytes += of.Training.Bytes()
		}
	}
	if cache == nil {
		return nil
	}
	return cache.forget()
}

// Take takes over the edges of all shards that are not held here from a replica of the same
// graph: from then on this one is as if it had been brought with them. Nobody may read its
// edges meanwhile.
func (r *Replica) Take(held []*graph.Shard, with *Replica) {
	r.Replicated, r.Later, r.Full = with.Replicated, with.Later, with.Full
	r.Bytes, r.Filed = r.Bytes+with.Bytes, with.Filed
	for i, s := range r.Shards {
		if held[i] == nil {
			from := with.Shards[i]
			s.Indptr, s.Indices, s.EdgeValues = from.Indptr, from.Indices, from.EdgeValues
			r.Summaries[i] = with.Summaries[i]
		}
	}
}
