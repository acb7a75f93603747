package sample

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Summary is what sampling knows of a shard whose edges are on another node. The rest
// comes with its rows, as they are requested.
type Summary struct{ Edges int64 }

// NewPartial takes a graph's shards, in any order, of which some have no edges here
// (Indptr is nil). For these there are summaries, in the order of shards.
func NewPartial(shards []*graph.Shard, summaries []*Summary) (*Topology, error) {
	parts := make([]part, len(shards))
	for i, s := range shards {
		parts[i] = partOf(s)
		if s.Indptr != nil || s.Vertices == 0 {
			continue
		}
		if i >= len(summaries) || summaries[i] == nil {
			return nil, fmt.Errorf("shard %d has neither edges here nor a summary of them", s.Number)
		}
		parts[i].far = summaries[i]
	}
	return newTopology(shards, parts)
}
