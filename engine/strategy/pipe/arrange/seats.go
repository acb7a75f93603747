package arrange

import "github.com/hopmesh/hopmesh/engine/peer"

// Seats assign the ways of each stage to nodes.
type Seats struct {
	Stages int
	nodes  [][]int // by stage, then by way
}

// NewSeats assigns ways of at most so many stages: one way of one stage to each node, as
// far as there are nodes. Any other nodes have nothing to compute. With fewer nodes than
// ways there is one stage, and nodes have runs of ways. owned returns how many vertices of
// a way a node owns: the first stage, which reads features, goes to the nodes that own
// most.
func NewSeats(stages, ways, nodes int, owned func(node, way int) uint64) *Seats {
	s := &Seats{Stages: max(1, min(stages, nodes/ways))}
	taken := make([]bool, nodes)
	for stage := range s.Stages {
		row := make([]int, ways)
		for way := range ways {
			if nodes < ways {
				row[way] = way * nodes / ways
				continue
			}
			best := -1
			for node := range nodes {
				if !taken[node] && (best < 0 || stage == 0 && owned(node, way) > owned(best, way)) {
					best = node
				}
			}
			row[way], taken[best] = best, true
		}
		s.nodes = append(s.nodes, row)
	}
	return s
}

// Node returns the node of a way of a stage.
func (s *Seats) Node(stage, way int) int { return s.nodes[stage][way] }

// Of returns the stage of a node and its ways, ascending: none, if it has nothing to
// compute.
func (s *Seats) Of(node int) (stage int, ways []int) {
	for stage, row := range s.nodes {
		for way, n := range row {
			if n == node {
				ways = append(ways, way)
			}
		}
		if ways != nil {
			return stage, ways
		}
	}
	return 0, nil
}

// Members returns the nodes of a stage, in the order of their ways, each once.
func (s *Seats) Members(stage int) (nodes []int) {
	for _, n := range s.nodes[stage] {
		if len(nodes) == 0 || nodes[len(nodes)-1] != n {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Seated assigns ways to nodes: the first stage goes to those that own most of their
// vertices.
func Seated(stages int, shape *Shape, l *peer.Layout) *Seats {
	return NewSeats(stages, shape.Ways(), l.Nodes, func(node, way int) (n uint64) {
		_, _, first, end := shape.Of(way)
		for shard := first; shard < end; shard++ {
			if l.Owners[shard] == node {
				n += uint64(l.Firsts[shard+1] - l.Firsts[shard])
			}
		}
		return n
	})
}
