package replica

import (
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// shards are those of a graph with so many vertices in each.
func shards(weighted bool, counts ...int) []*graph.Shard {
	r := rand.New(rand.NewPCG(2, 9))
	total, first := 0, 0
	for _, n := range counts {
		total += n
	}
	var all []*graph.Shard
	for i, n := range counts {
		s := &graph.Shard{
			Number: i, Shards: len(counts), First: uint32(first), Vertices: n, Total: uint32(total), Features: 2, Classes: 3, DType: graph.F32,
			Indptr: []int64{0}, Indices: []int32{}, DenseRows: graph.DenseRows{Dense: make([]float32, 2*n)}, Labels: make([]int32, n), Marks: [][]graph.Mark{make([]graph.Mark, n), make([]graph.Mark, n)},
			Originals: graph.Originals{Ints: make([]int64, n)},
		}
		for row := range n {
			for u := range total {
				if r.IntN(total) < 5 || u == first+row && r.IntN(4) == 0 {
					s.Indices = append(s.Indices, int32(u))
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
			s.Labels[row], s.Marks[0][row], s.Marks[1][row] = int32(r.IntN(4)-1), graph.Mark(r.IntN(4)), graph.Mark(r.IntN(4))
			s.Dense[2*row] = float32(r.IntN(2))
		}
		if weighted {
			s.Weights = make([]float32, len(s.Indices))
			for e := range s.Weights {
				s.Weights[e] = r.Float32()
			}
		}
		all = append(all, s)
		first += n
	}
	return all
}

// mesh has nodes serve the shards that they own; here is what each holds.
func mesh(n int, all []*graph.Shard, owners []int) (net *loopback.Net, works []peer.Work, here [][]*graph.Shard) {
	net = loopback.New(n)
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	for self := range n {
		held := make([]*graph.Shard, len(all))
		for i, s := range all {
			if owners[i] == self {
				held[i] = s
			}
		}
		Serve(net.Node(self), held)
		net.Node(self).Open()
		works = append(works, peer.Work{Nodes: names, Self: self, Owners: owners})
		here = append(here, held)
	}
	return net, works, here
}

var owners = []int{0, 1, 0, 2, 1, 2, 2, 0}

func graphs(weighted bool) []*graph.Shard { return shards(weighted, 40, 1, 70, 0, 64, 129, 3, 30) }
