package vicinity

import (
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// kind is how a graph's shards are stored.
type kind struct{ weighted, sparse bool }

// shardsOf are those of a graph with so many vertices in each.
func shardsOf(k kind, counts ...int) []*graph.Shard {
	r := rand.New(rand.NewPCG(2, 9))
	total, first := 0, 0
	for _, n := range counts {
		total += n
	}
	var all []*graph.Shard
	for i, n := range counts {
		s := &graph.Shard{
			Number: i, Shards: len(counts), First: uint32(first), Vertices: n, Total: uint32(total), Features: 3, Classes: 3, DType: graph.F32,
			Indptr: []int64{0}, Indices: []int32{}, Labels: make([]int32, n),
		}
		if k.weighted {
			s.Weights = []float32{}
		}
		if k.sparse {
			s.Sparse = &graph.SparseRows{Indptr: []int64{0}, Columns: []int32{}, Values: []float32{}}
		} else {
			s.Dense = []float32{}
		}
		for row := range n {
			for u := range total {
				if r.IntN(total) < 6 || u == first+row && r.IntN(4) == 0 {
					s.Indices = append(s.Indices, int32(u))
					if k.weighted {
						s.Weights = append(s.Weights, r.Float32())
					}
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
			for c := range 3 {
				x := r.Float32()
				if !k.sparse {
					s.Dense = append(s.Dense, x)
				} else if r.IntN(2) == 0 {
					s.Sparse.Columns, s.Sparse.Values = append(s.Sparse.Columns, int32(c)), append(s.Sparse.Values, x)
				}
			}
			if k.sparse {
				s.Sparse.Indptr = append(s.Sparse.Indptr, int64(len(s.Sparse.Columns)))
			}
		}
		all = append(all, s)
		first += n
	}
	return all
}

// bare is a shard without edges and features, as nodes know those of others.
func bare(s *graph.Shard) *graph.Shard {
	b := *s
	b.Indptr, b.Indices, b.Weights, b.Dense, b.Sparse = nil, nil, nil, nil, nil
	return &b
}

// sourcesOf are those of nodes that own shards.
func sourcesOf(t testing.TB, shards []*graph.Shard, nodes int, owners []int) (*loopback.Net, []*Source) {
	t.Helper()
	net := loopback.New(nodes)
	l := peer.Layout{Nodes: nodes, Owners: owners}
	var stats []graph.FeatureStats
	work := peer.Work{Owners: owners}
	for _, s := range shards {
		l.Firsts, stats = append(l.Firsts, s.First), append(stats, graph.StatsOf(s))
	}
	l.Firsts = append(l.Firsts, shards[0].Total)
	for node := range nodes {
		work.Nodes = append(work.Nodes, "n"+string(rune('0'+node)))
	}
	var all []*Source
	for node := range nodes {
		work.Self = node
		held := make([]*graph.Shard, len(shards))
		for i, s := range shards {
			if held[i] = bare(s); owners[i] == node {
				held[i] = s
			}
		}
		store, err := features.OpenPart(held, stats, "none")
		if err != nil {
			t.Fatal(err)
		}
		peers := net.Node(node)
		s, rows := Register(peers), gather.Register(peers)
		peers.Open()
		if err := rows.Ready(store, work, l, ""); err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(held, 0, store, rows, work, l, ""); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return net, all
}
