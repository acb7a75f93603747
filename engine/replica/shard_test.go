package replica

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A shard that is brought by itself is its owner's, and leaves the replica as it was.
func TestShards(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		all := graphs(weighted)
		net, works, here := mesh(3, all, owners)
		r, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{Topology: sharded, Bare: true})
		if err != nil {
			t.Fatal(err)
		}
		var tally peer.Tally
		for i, want := range all {
			if owners[i] == 0 {
				continue
			}
			s, err := r.Shard(t.Context(), net.Node(0), works[0], i, &tally)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Indptr, want.Indptr) || !slices.Equal(s.Indices, want.Indices) || !slices.Equal(s.Weights, want.Weights) ||
				!slices.Equal(s.Labels, want.Labels) || len(s.Marks) != 2 || !slices.Equal(s.Marks[1], want.Marks[1]) || s.First != want.First {
				t.Errorf("shard %d is not as its owner has it", i)
			}
			if known := r.Shards[i]; known.Indptr != nil || known.Labels != nil {
				t.Errorf("the replica has edges or labels of shard %d", i)
			}
		}
		if sent := tally.Read(); sent.Bytes[peer.Shard] == 0 {
			t.Error("nothing is counted")
		}
	}
}

// What comes in place of the shard that is known is refused.
func TestOtherShards(t *testing.T) {
	all := graphs(false)
	net, works, here := mesh(3, all, owners)
	r, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{Topology: sharded})
	if err != nil {
		t.Fatal(err)
	}
	changed := *all[1]
	for name, change := range map[string]func(*graph.Shard){
		"edges": func(s *graph.Shard) { s.Indptr, s.Indices = []int64{0, 1}, []int32{0} },
		"first": func(s *graph.Shard) { s.First++ },
		"vertices": func(s *graph.Shard) {
			s.Vertices, s.Indptr, s.Labels = 2, append(slices.Clone(s.Indptr), s.Indptr[1]), []int32{0, 0}
		},
		"splits":  func(s *graph.Shard) { s.Marks = s.Marks[:1] },
		"number":  func(s *graph.Shard) { s.Number++ },
		"classes": func(s *graph.Shard) { s.Classes++ },
	} {
		other := changed
		change(&other)
		here[1][1] = &other
		if _, err := r.Shard(t.Context(), net.Node(0), works[0], 1, nil); err == nil {
			t.Errorf("another number of %s is taken", name)
		}
	}
}
