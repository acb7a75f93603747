package session

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// elsewhere are peers that nobody asks.
type elsewhere struct{ nobody }

func TestWorkThatCantBeIsRefused(t *testing.T) {
	for name, w := range map[string]peer.Work{
		"too few lists":   {Holders: [][]int{{1}}},
		"no such node":    {Holders: [][]int{{2}, nil}},
		"below them":      {Holders: [][]int{{-1}, nil}},
		"the owner again": {Holders: [][]int{nil, {1}}},
		"one twice":       {Holders: [][]int{{1, 1}, nil}},
		"weights":         {Weights: []uint64{1}},
	} {
		w.Nodes, w.Owners = []string{"a", "b"}, []int{0, 1}
		if _, err := New(elsewhere{}, w, []*graph.Shard{{}, {}}); err == nil || !strings.Contains(err.Error(), "of a job's 2 nodes") && !strings.Contains(err.Error(), "2 shards and 2 nodes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
