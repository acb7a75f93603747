package frontier

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// vertices are those of the graph that tests share, and borders those of its shards.
const vertices = 600

var borders = []int{0, 80, 81, 200, 333, 333, 500, vertices}

// shards are of a made-up graph with hubs, self-loops and vertices without edges. If it
// has weights, one shard has none, which says that they are 1.
func shards(weighted bool) []*graph.Shard {
	r := rand.New(rand.NewPCG(5, 1))
	rows := make([]map[int32]bool, vertices)
	for v := range rows {
		rows[v] = map[int32]bool{}
	}
	for range 6 * vertices {
		to := r.IntN(vertices)
		switch r.IntN(5) {
		case 0:
			to = r.IntN(3) * 190
		case 1:
			rows[to][int32(to)] = true
		}
		if to%7 != 5 {
			rows[to][int32(r.IntN(vertices))] = true
		}
	}
	var all []*graph.Shard
	first := 0
	for i, end := range borders {
		s := &graph.Shard{Number: i, Shards: len(borders), First: uint32(first), Vertices: end - first, Total: vertices, Indptr: []int64{0}}
		for ; first < end; first++ {
			at := len(s.Indices)
			for u := range rows[first] {
				s.Indices = append(s.Indices, u)
			}
			slices.Sort(s.Indices[at:])
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		if weighted && i != 3 {
			for range s.Indices {
				s.Weights = append(s.Weights, 0.25+r.Float32())
			}
		}
		all = append(all, s)
	}
	return all
}

// A node is what a test has of one.
type node struct {
	peers    *loopback.Node
	work     peer.Work
	layout   peer.Layout
	topology *sample.Topology
	server   *Server
}

// mesh deals shards to nodes, each of which has the edges of its own. The last node of
// several has none.
func mesh(t testing.TB, all []*graph.Shard, n int, r *rand.Rand) ([]*node, *loopback.Net) {
	t.Helper()
	net := loopback.New(n)
	owners, names := make([]int, len(all)), make([]string, n)
	var firsts []uint32
	for i := range owners {
		owners[i] = r.IntN(max(1, n-1))
		firsts = append(firsts, all[i].First)
	}
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	var nodes []*node
	for self := range n {
		x := &node{
			peers: net.Node(self), work: peer.Work{Nodes: names, Self: self, Owners: owners},
			layout: peer.Layout{Nodes: n, Owners: owners, Firsts: append(slices.Clone(firsts), vertices)},
		}
		some, summaries := slices.Clone(all), make([]*sample.Summary, len(all))
		for i, s := range all {
			if owners[i] != self {
				some[i] = graph.NewSkeleton(s, graph.FeatureStats{}, false).Shard
				summaries[i] = &sample.Summary{Edges: int64(len(s.Indices))}
			}
		}
		var err error
		if x.topology, err = sample.NewPartial(some, summaries); err != nil {
			t.Fatal(err)
		}
		x.server = Serve(x.peers)
		x.peers.Open()
		nodes = append(nodes, x)
	}
	return nodes, net
}

// frontier makes what a sampler of the node asks.
func (x *node) frontier() *Frontier { return New(x.peers, x.work, x.layout) }

func roots(r *rand.Rand, n int) []uint32 {
	var all []uint32
	for _, v := range r.Perm(vertices)[:n] {
		all = append(all, uint32(v))
	}
	return all
}
