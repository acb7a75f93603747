package sample

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

// An edge of a graph that a test writes down.
type edge struct {
	from, to uint32
	weight   float32
}

// cut makes shards of edges: one up to each of the ends, which ascend.
func cut(edges []edge, weighted bool, ends ...int) []*graph.Shard {
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
				if weighted {
					s.Weights = append(s.Weights, edges[0].weight)
				}
				edges = edges[1:]
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
		first = end
	}
	return shards
}

func topology(t testing.TB, shards []*graph.Shard) *Topology {
	t.Helper()
	to, err := NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// wild is a graph with all there is: hubs, vertices without edges in or out, some
// with an edge from themselves.
func wild(n, edges int, seed uint64) []edge {
	r := rand.New(rand.NewPCG(seed, 1))
	has := map[[2]uint32]bool{}
	var all []edge
	for range edges {
		from, to := uint32(r.IntN(n)), uint32(r.IntN(n))
		switch r.IntN(4) {
		case 0:
			to = uint32(r.IntN(3)) // hubs
		case 1:
			if r.IntN(8) == 0 {
				to = from
			}
		}
		if to%7 == 5 || from%11 == 3 || has[[2]uint32{from, to}] {
			continue
		}
		has[[2]uint32{from, to}] = true
		all = append(all, edge{from, to, 0.25 + r.Float32()})
	}
	return all
}

// rmat is the edges of a made-up graph in one shard.
func rmat(t testing.TB, vertices uint32, edges uint64) []*graph.Shard {
	t.Helper()
	src, err := generate.New(generate.Options{Kind: "rmat", Vertices: vertices, Edges: edges, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &graph.Shard{Shards: 1, Vertices: int(vertices), Total: vertices, Indptr: make([]int64, vertices+1)}
	err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for _, v := range b.Dst {
			s.Indptr[v+1]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for v := range vertices {
		s.Indptr[v+1] += s.Indptr[v]
	}
	at := slices.Clone(s.Indptr)
	s.Indices = make([]int32, s.Indptr[vertices])
	err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		for i, v := range b.Dst {
			s.Indices[at[v]] = int32(b.Src[i])
			at[v]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	end, from := int64(0), int64(0)
	for v := range vertices {
		row := s.Indices[from:s.Indptr[v+1]]
		from = s.Indptr[v+1]
		slices.Sort(row)
		end += int64(copy(s.Indices[end:], slices.Compact(row)))
		s.Indptr[v+1] = end
	}
	s.Indices = s.Indices[:end]
	return []*graph.Shard{s}
}
