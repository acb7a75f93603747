package grappa

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// An edge of a graph that a test writes down.
type edge struct{ from, to uint32 }

// cut makes shards of edges: one up to each of the ends, which ascend.
func cut(edges []edge, ends ...int) []*graph.Shard {
	edges = slices.Clone(edges)
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	var shards []*graph.Shard
	first := 0
	for i, end := range ends {
		s := &graph.Shard{
			Number: i, Shards: len(ends), First: uint32(first), Vertices: end - first,
			Total: uint32(ends[len(ends)-1]), Indptr: []int64{0},
		}
		for v := first; v < end; v++ {
			for len(edges) > 0 && int(edges[0].to) == v {
				s.Indices = append(s.Indices, int32(edges[0].from))
				edges = edges[1:]
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
		first = end
	}
	return shards
}

func firstsOf(shards []*graph.Shard) (all []uint32) {
	for _, s := range shards {
		all = append(all, s.First)
	}
	return append(all, shards[0].Total)
}

func topology(t testing.TB, shards []*graph.Shard) *sample.Topology {
	t.Helper()
	to, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// wild is a graph with hubs, vertices without edges in or out, and some with an edge
// from themselves; most edges are between vertices whose ids are near.
func wild(n, edges int, seed uint64) []edge {
	r := rand.New(rand.NewPCG(seed, 1))
	has := map[edge]bool{}
	var all []edge
	for range edges {
		to := uint32(r.IntN(n))
		from := (to + uint32(r.IntN(9)) + uint32(n) - 4) % uint32(n)
		switch r.IntN(5) {
		case 0:
			to = uint32(r.IntN(3)) // hubs
		case 1:
			from = uint32(r.IntN(n))
		}
		e := edge{from, to}
		if to%7 == 5 || from%11 == 3 || has[e] || from == to && r.IntN(2) == 0 {
			continue
		}
		has[e] = true
		all = append(all, e)
	}
	return all
}

// contextOf builds a context of a graph that is here.
func contextOf(t testing.TB, of *sample.Topology, firsts []uint32, s *Schedule, o Settings, group, super int, seed uint64) *Context {
	t.Helper()
	b, err := NewBuilder(BuildOptions{Schedule: s, Settings: &o, Group: group, Super: super, Seed: seed, Firsts: firsts, Topology: of})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Context()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
