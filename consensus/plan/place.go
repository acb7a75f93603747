package plan

import (
	"cmp"
	"slices"
)

// PlaceNode describes a member to Place.
type PlaceNode struct {
	ID       string
	Weight   uint64 // its relative share of the shards
	Capacity uint64 // bytes of shards it may own; 0: no bound
	Serving  bool   // it answers now
	Stays    bool   // it is neither leaving nor lost for long
}

// Place computes which nodes must hold which shards, from where the shards are, where
// they are wanted and what the nodes are. Owners are nodes that serve and stay. They
// get shards by weight, in few runs of neighbouring shards, and as few shards as
// possible change owner. Copies go to other nodes. Place returns false if nothing need
// change; it does not change its own result once that is carried out. A shard that no
// serving node holds is left as it is.
func Place(d Dataset, nodes []PlaceNode) (PlaceShards, bool) {
	if d.Stage == Importing || len(d.Shards) == 0 {
		return PlaceShards{}, false
	}
	b := newBoard(d, nodes)
	b.assignOwners()
	b.assignCopies()
	changed := d.Stage == Placing && d.settled()
	for _, r := range b.rows {
		changed = changed || !slices.Equal(r.result, r.wanted) || r.movable && !b.nodes[r.holders[0]].Serving
	}
	if !changed {
		return PlaceShards{}, false
	}
	return b.command(), true
}

// settled reports whether every shard is held, and where it is wanted.
func (d Dataset) settled() bool {
	for i := range d.Shards {
		if !d.Settled(i) || d.Lost(i) {
			return false
		}
	}
	return true
}

// nobody is the index of no node.
const nobody = -1

// maxWeight keeps weights times shards, and their sums, far from overflow.
const maxWeight = 1 << 32

// board is one dataset with the nodes in the order of their ids. Nodes are identified
// by their index in it.
type board struct {
	d        Dataset
	nodes    []PlaceNode
	eligible []bool // may own shards
	rows     []*row
}

// row is one shard. The lists are of nodes.
type row struct {
	wanted  []int // the owner first, as the plan has it
	holders []int
	movable bool // a serving node holds it
	owner   int  // first the current or upcoming owner, then the one chosen; or nobody
	result  []int
}

func newBoard(d Dataset, nodes []PlaceNode) *board {
	b := &board{d: d, nodes: slices.Clone(nodes)}
	for _, id := range d.Nodes {
		if !slices.ContainsFunc(nodes, func(n PlaceNode) bool { return n.ID == id }) {
			b.nodes = append(b.nodes, PlaceNode{ID: id}) // not among the given nodes
		}
	}
	slices.SortFunc(b.nodes, func(a, b PlaceNode) int { return cmp.Compare(a.ID, b.ID) })
	staying := false
	for i := range b.nodes {
		n := &b.nodes[i]
		n.Weight = min(max(n.Weight, 1), maxWeight)
		staying = staying || n.Serving && n.Stays
	}
	b.eligible = make([]bool, len(b.nodes))
	for i, n := range b.nodes {
		// If all serving nodes are leaving, they remain eligible until others are back.
		b.eligible[i] = n.Serving && (n.Stays || !staying)
	}
	known := make([]int, len(d.Nodes)) // from index in d to index here
	for i, id := range d.Nodes {
		known[i], _ = slices.BinarySearchFunc(b.nodes, id, func(n PlaceNode, id string) int { return cmp.Compare(n.ID, id) })
	}
	translate := func(list []int) []int {
		to := make([]int, len(list))
		for i, n := range list {
			to[i] = known[n]
		}
		return to
	}
	for i, s := range d.Shards {
		r := &row{wanted: translate(d.wanted(i)), holders: translate(s.Holders), owner: nobody}
		r.movable = slices.ContainsFunc(r.holders, func(n int) bool { return b.nodes[n].Serving })
		switch {
		case !r.movable:
			r.result = r.wanted
		case b.eligible[r.wanted[0]]:
			r.owner = r.wanted[0]
		case b.eligible[r.holders[0]]:
			r.owner = r.holders[0]
		}
		b.rows = append(b.rows, r)
	}
	return b
}

// movable lists the indices of the movable rows.
func (b *board) movable() []int {
	var list []int
	for i, r := range b.rows {
		if r.movable {
			list = append(list, i)
		}
	}
	return list
}

// command returns the rows, with only the nodes that they name.
func (b *board) command() PlaceShards {
	c := PlaceShards{ID: b.d.ID, Wanted: make([][]int, len(b.rows))}
	at := make([]int, len(b.nodes))
	for _, r := range b.rows {
		for _, n := range r.result {
			at[n] = 1
		}
	}
	for n, used := range at {
		if id := b.nodes[n].ID; !b.nodes[n].Serving && slices.Contains(b.d.Nodes, id) {
			c.Away = append(c.Away, id)
		}
		if used > 0 {
			at[n] = len(c.Nodes)
			c.Nodes = append(c.Nodes, b.nodes[n].ID)
		}
	}
	for i, r := range b.rows {
		c.Wanted[i] = make([]int, len(r.result))
		for k, n := range r.result {
			c.Wanted[i][k] = at[n]
		}
	}
	return c
}

func (r *row) holds(n int) bool { return slices.Contains(r.holders, n) }
