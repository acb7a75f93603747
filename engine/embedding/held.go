package embedding

import "github.com/hopmesh/hopmesh/engine/peer"

// Second returns the node that has the rows of an owner's shards, too, and makes the same updates: the
// next one in the run's list.
func Second(owner, nodes int) int { return (owner + 1) % nodes }

// Holds reports whether a node has the rows of a shard, where each has those of some.
func Holds(l *peer.Layout, shard, node int) bool {
	owner := l.Owners[shard]
	return owner == node || Second(owner, l.Nodes) == node
}

// Fits reports whether each node has all rows where nothing else is said: with the weights they take no
// more than half of the memory that a node has. Steps need some, and evaluations.
func Fits(weights, has uint64) bool { return weights <= has/2 }

// Held returns how many rows a node has, where each has those of some shards.
func Held(l *peer.Layout, node int) (rows uint64) {
	for shard := range l.Owners {
		if Holds(l, shard, node) {
			rows += uint64(l.Firsts[shard+1] - l.Firsts[shard])
		}
	}
	return rows
}

// held knows which rows are here: those of the shards whose owner is this node or the one before it in
// the run's list. They lie in the order of their vertices. Where it is nil, all rows are here.
type held struct {
	layout *peer.Layout
	self   int
	at     []int // of each shard: the place of its first row; -1: its rows are elsewhere
	rows   int
	// near[v>>shift] is the shard of the first vertex with these high bits; v is in that shard or
	// in one of the next.
	near  []uint16
	shift uint
}

// nearPerShard is the least average number of entries of near for each shard.
const nearPerShard = 4

func newHeld(l *peer.Layout, self int) *held {
	h := &held{layout: l, self: self}
	for shard := range l.Owners {
		if !Holds(l, shard, self) {
			h.at = append(h.at, -1)
			continue
		}
		h.at = append(h.at, h.rows)
		h.rows += int(l.Firsts[shard+1] - l.Firsts[shard])
	}
	for int(l.Vertices())>>h.shift > nearPerShard*len(l.Owners) {
		h.shift++
	}
	h.near = make([]uint16, int(l.Vertices())>>h.shift+1)
	shard := 0
	for i := range h.near {
		for shard+1 < len(l.Owners) && uint64(l.Firsts[shard+1]) <= uint64(i)<<h.shift {
			shard++
		}
		h.near[i] = uint16(shard)
	}
	return h
}

// shard returns the shard of a vertex of the graph.
func (h *held) shard(v uint32) int {
	shard := int(h.near[v>>h.shift])
	for v >= h.layout.Firsts[shard+1] {
		shard++
	}
	return shard
}

// place returns where among the rows that of a vertex is; -1: elsewhere.
func (h *held) place(v uint32) int {
	if h == nil {
		return int(v)
	}
	shard := h.shard(v)
	if h.at[shard] < 0 {
		return -1
	}
	return h.at[shard] + int(v-h.layout.Firsts[shard])
}

// owners returns the owners whose shards' rows are here, of which others send gradients; of a table
// that has all rows, 0 stands for all.
func (h *held) owners() []int {
	if h == nil {
		return []int{0}
	}
	all := []int{h.self}
	if before := (h.self + h.layout.Nodes - 1) % h.layout.Nodes; before != h.self {
		all = append(all, before)
	}
	return all
}

// to returns to whose holders the gradient of a vertex' row goes.
func (h *held) to(v uint32) int {
	if h == nil {
		return 0
	}
	return h.layout.Owners[h.shard(v)]
}

// messages returns of how many messages a node's gradients consist: one for the holders of each owner's
// shards; one for all where all have all rows.
func (h *held) messages() int {
	if h == nil {
		return 1
	}
	return h.layout.Nodes
}

// each calls do for the rows of each stretch of vertices that follow one another here.
func (h *held) each(vertices int, do func(first uint32, place, rows int)) {
	if h == nil {
		do(0, 0, vertices)
		return
	}
	for shard, at := range h.at {
		if n := int(h.layout.Firsts[shard+1] - h.layout.Firsts[shard]); at >= 0 && n > 0 {
			do(h.layout.Firsts[shard], at, n)
		}
	}
}
