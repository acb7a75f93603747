package replica

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

func TestBring(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		all := graphs(weighted)
		whole, err := sample.NewTopology(all)
		if err != nil {
			t.Fatal(err)
		}
		net, works, here := mesh(4, all, owners)
		for self := range works {
			for _, labels := range []bool{false, true} {
				for _, topology := range []string{"", auto, replicated, sharded} {
					r, err := Bring(t.Context(), net.Node(self), works[self], here[self], Options{Topology: topology, Bare: !labels, Split: 1})
					if err != nil {
						t.Fatal(err)
					}
					if r.Replicated == (topology == sharded) || r.Bytes == 0 {
						t.Errorf("%q: replicated is %v, %d bytes", topology, r.Replicated, r.Bytes)
					}
					for i, s := range all {
						same(t, r, i, s, here[self][i], labels)
					}
					to, err := sample.NewPartial(r.Shards, r.Summaries)
					if err != nil || to.Edges() != whole.Edges() {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// Shards of a graph with very many relations come with its types.
func TestBringTypes(t *testing.T) {
	all := graphs(false)
	types := &graph.Types{Vertices: []graph.VertexType{{Name: "a", Vertices: uint64(all[0].Total), Features: all[0].Features}}}
	for i := range 150 {
		types.Relations = append(types.Relations, graph.Relation{Source: "a", Name: fmt.Sprintf("the relation %d", i), Target: "a"})
	}
	for _, s := range all {
		s.Related = &graph.Related{Count: len(types.Relations), Types: types, Of: make([]float32, len(s.Indices))}
	}
	net, works, here := mesh(4, all, owners)
	other := *types
	other.Relations = slices.Clone(types.Relations)
	other.Relations[7].Name = "another"
	for _, wrong := range []*graph.Types{nil, &other} {
		all[3].Related.Types = wrong
		if _, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{}); err == nil || !strings.Contains(err.Error(), "shard 3, of node c, is not of the same graph") {
			t.Errorf("shard 3 has other types: %v", err)
		}
	}
	all[3].Related.Types = types
	for _, topology := range []string{replicated, sharded} {
		for _, bare := range []bool{false, true} {
			r, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{Topology: topology, Bare: bare})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range r.Shards {
				if got := s.Related.Types; !reflect.DeepEqual(got, types) {
					t.Errorf("%s: shard %d came with the types %+v", topology, i, got)
				}
			}
		}
	}
}

// same holds what was brought of a shard against the shard.
func same(t *testing.T, r *Replica, i int, s, held *graph.Shard, labels bool) {
	t.Helper()
	got := r.Shards[i]
	if r.Stats[i] != graph.StatsOf(s) {
		t.Errorf("shard %d has %+v", i, r.Stats[i])
	}
	if held != nil {
		if got != held || r.Summaries[i] != nil {
			t.Errorf("shard %d is held here, and is another now", i)
		}
		return
	}
	if got.First != s.First || got.Vertices != s.Vertices || got.Features != 2 || got.Dense != nil {
		t.Errorf("shard %d came as %+v", i, got)
	}
	if labels && (!reflect.DeepEqual(got.Labels, s.Labels) || !reflect.DeepEqual(got.Marks, s.Marks)) {
		t.Errorf("shard %d came with other labels or marks", i)
	}
	if !labels && (got.Labels != nil || got.Marks != nil || !reflect.DeepEqual(r.Seeds[i], graph.SeedsOf(s, 1))) {
		t.Errorf("shard %d came with labels or marks, or as %+v", i, r.Seeds[i])
	}
	if r.Replicated {
		if r.Summaries[i] != nil || !slices.Equal(got.Indptr, s.Indptr) || !slices.Equal(got.Indices, s.Indices) || !reflect.DeepEqual(got.Weights, s.Weights) {
			t.Errorf("shard %d has other edges", i)
		}
		return
	}
	if m := r.Summaries[i]; got.Indptr != nil || got.Indices != nil || got.Weights != nil || *m != (sample.Summary{Edges: int64(len(s.Indices))}) {
		t.Errorf("shard %d came with %+v", i, m)
	}
}

func TestMemoryDecides(t *testing.T) {
	net, works, here := mesh(4, graphs(true), owners)
	bring := func(topology string, memory uint64, needed bool) (*Replica, error) {
		return Bring(t.Context(), net.Node(1), works[1], here[1], Options{Topology: topology, Memory: memory, Needed: needed})
	}
	with, without := int64(0), int64(0)
	for i, s := range graphs(true) {
		if owners[i] != 1 {
			with, without = with+graph.SizeOf(s).Size(true, true), without+graph.SizeOf(s).Size(false, true)
		}
	}
	for _, c := range []struct {
		topology string
		memory   int64
		want     string
	}{
		{auto, 2 * with, replicated},
		{auto, 2*with - 2, sharded},
		{"", 0, replicated},
		{replicated, with, replicated},
		{replicated, with - 1, "use {topology}=sharded"},
		{sharded, 0, sharded},
		{sharded, without, sharded},
		{auto, without - 1, "more memory"},
		{"half", 0, `can't be "half"`},
	} {
		r, err := bring(c.topology, uint64(c.memory), false)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want), err == nil && r.Replicated != (c.want == replicated), err == nil && c.want != replicated && c.want != sharded:
			t.Errorf("%q with %d bytes: %v, %v", c.topology, c.memory, r, err)
		}
	}
	if _, err := bring(replicated, uint64(with)-1, true); err == nil || !strings.HasSuffix(err.Error(), "use nodes with more memory, since the job needs all edges on each") {
		t.Errorf("a job that needs all edges: %v", err)
	}
}
