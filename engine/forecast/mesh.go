package forecast

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Place returns which of so many nodes owns each shard, and which others hold a copy.
type Place func(nodes int) (owners []int, holders [][]int)

// Even returns a Place that gives nodes even runs of neighbouring shards, and so many
// copies to the nodes that follow the owner.
func Even(shards, copies int) Place {
	return func(nodes int) ([]int, [][]int) {
		owners, holders := make([]int, shards), make([][]int, shards)
		for i := range owners {
			owners[i] = i * nodes / shards
			for n := range min(copies, nodes-1) {
				holders[i] = append(holders[i], (owners[i]+1+n)%nodes)
			}
			slices.Sort(holders[i])
		}
		return owners, holders
	}
}

// cutFurther returns the first vertices of shards that are cut so that each of so many
// nodes has one: shards are runs of vertices, and any run is itself a good part.
func cutFurther(firsts []uint32, nodes int) []uint32 {
	shards := len(firsts) - 1
	if shards >= nodes {
		return firsts
	}
	pieces := (nodes + shards - 1) / shards
	var all []uint32
	for i := range shards {
		first, n := uint64(firsts[i]), uint64(firsts[i+1]-firsts[i])
		for piece := range uint64(pieces) {
			all = append(all, uint32(first+n*piece/uint64(pieces)))
		}
	}
	return append(all, firsts[shards])
}

// A mesh is a graph's vertices on so many virtual nodes.
type mesh struct {
	layout peer.Layout
	holds  [][]bool // for each node, whether it holds a shard
	halos  []int    // of each node, once they are counted
}

func newMesh(firsts []uint32, place Place, costs []uint64, nodes int) *mesh {
	m := &mesh{layout: peer.Layout{Nodes: nodes, Firsts: cutFurther(firsts, nodes)}}
	l := &m.layout
	if len(l.Firsts) == len(firsts) {
		l.Costs = costs
	} else {
		place = Even(len(l.Firsts)-1, 0) // of shards that nobody has cut yet
	}
	l.Owners, l.Holders = place(nodes)
	m.holds = make([][]bool, nodes)
	for n := range m.holds {
		m.holds[n] = make([]bool, len(l.Owners))
	}
	copies := false
	for shard, owner := range l.Owners {
		m.holds[owner][shard] = true
		for _, n := range l.Holders[shard] {
			m.holds[n][shard], copies = true, true
		}
	}
	if !copies {
		l.Holders = nil // as the plan has it
	}
	return m
}

// owned returns how many vertices each node owns.
func (m *mesh) owned() []int {
	of := make([]int, m.layout.Nodes)
	for shard, owner := range m.layout.Owners {
		of[owner] += int(m.layout.Firsts[shard+1] - m.layout.Firsts[shard])
	}
	return of
}

// most returns the vertices of the node that holds most.
func (m *mesh) most() (most int) {
	for node := range m.holds {
		n := 0
		for shard, has := range m.holds[node] {
			if has {
				n += int(m.layout.Firsts[shard+1] - m.layout.Firsts[shard])
			}
		}
		most = max(most, n)
	}
	return most
}
