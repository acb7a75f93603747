package plan

import (
	"cmp"
	"slices"
)

// copying distributes the copies of shards besides the owners'.
type copying struct {
	*board
	each  int     // copies of each shard
	lists [][]int // holders of copies, by row
	count []int   // copies, by node
	pairs [][]int // copies of the first node's shards on the second
	fair  [][]int // as they should be
	owned []int
	quota []int
}

// assignCopies completes the rows' results. Copies stay where they are or are on their
// way to, even on nodes that don't serve but will be back. Missing copies go to other
// nodes, so that the copies of each node's shards are spread over all other nodes in
// runs: then a failure burdens all alike and leaves few runs.
func (b *board) assignCopies() {
	c := &copying{
		board: b, lists: make([][]int, len(b.rows)), count: make([]int, len(b.nodes)), quota: make([]int, len(b.nodes)),
		pairs: make([][]int, len(b.nodes)), fair: make([][]int, len(b.nodes)), owned: make([]int, len(b.nodes)),
	}
	rows := b.movable()
	for n, p := range b.nodes {
		c.pairs[n] = make([]int, len(b.nodes))
		if p.Stays {
			c.each++
		}
	}
	c.each = max(0, min(b.d.Replicas, c.each-1))
	for _, i := range rows {
		c.owned[b.rows[i].owner]++
	}
	for n := range b.nodes {
		c.fair[n] = c.fairShares(n)
	}
	c.keep(rows)
	c.fill(rows)
	c.spread(rows)
	for _, i := range rows {
		b.rows[i].result = append([]int{b.rows[i].owner}, c.lists[i]...)
	}
}

// keep retains existing copies, up to the wanted number. Wanted copies come first; if
// there are too many, those on serving nodes.
func (c *copying) keep(rows []int) {
	for _, i := range rows {
		r := c.rows[i]
		var there []int
		for _, n := range slices.Concat(r.wanted, r.holders) {
			if c.keeps(r, n) && !slices.Contains(there, n) {
				there = append(there, n)
			}
		}
		wanted := 0
		for wanted < len(there) && slices.Contains(r.wanted, there[wanted]) {
			wanted++
		}
		if wanted > c.each {
			slices.SortStableFunc(there, func(x, y int) int { return compareBool(c.nodes[x].Serving, c.nodes[y].Serving) })
		}
		for _, n := range there[:min(len(there), c.each)] {
			c.add(i, n)
		}
	}
}

// keeps reports whether a copy on this node, present or on its way, can be relied on.
func (c *copying) keeps(r *row, n int) bool {
	return n != r.owner && c.nodes[n].Stays && (c.nodes[n].Serving || r.holds(n))
}

func (c *copying) add(i, n int) {
	c.lists[i] = append(c.lists[i], n)
	c.count[n]++
	c.pairs[c.rows[i].owner][n]++
}

func (c *copying) due(n int) int { return c.quota[n] - c.count[n] }

// setQuotas divides the copies by weight among the nodes that take new ones. The others
// keep what they have.
func (c *copying) setQuotas(rows []int) {
	total := len(rows) * c.each
	var claims []claim
	for n, p := range c.nodes {
		if c.takes(n) {
			claims = append(claims, claim{node: n, weight: p.Weight, most: len(rows) - c.owned[n], has: c.count[n]})
		} else {
			total -= c.count[n]
			c.quota[n] = c.count[n]
		}
	}
	if len(claims) == 0 {
		return
	}
	for k, part := range divide(max(0, total), claims) {
		c.quota[claims[k].node] = part
	}
}

func (c *copying) takes(n int) bool { return c.nodes[n].Serving && c.nodes[n].Stays }

// fairShares divides the copies of one node's shards among the others, by weight.
func (c *copying) fairShares(owner int) []int {
	var claims []claim
	for n, p := range c.nodes {
		if n != owner && c.takes(n) {
			claims = append(claims, claim{node: n, weight: p.Weight, most: c.owned[owner]})
		}
	}
	shares := make([]int, len(c.nodes))
	if c.owned[owner] > 0 && len(claims) > 0 {
		for k, part := range divide(c.owned[owner]*c.each, claims) {
			shares[claims[k].node] = part
		}
	}
	return shares
}

// lacks returns how many more copies of the owner's shards node n should have.
func (c *copying) lacks(owner, n int) int { return c.fair[owner][n] - c.pairs[owner][n] }

// fill places the missing copies, owner by owner.
func (c *copying) fill(rows []int) {
	for owner := range c.nodes {
		var last []int
		for _, i := range rows {
			if c.rows[i].owner != owner {
				continue
			}
			for len(c.lists[i]) < c.each {
				n := c.bestFor(i, last)
				if n == nobody {
					break
				}
				c.add(i, n)
			}
			last = c.lists[i]
		}
	}
}

// bestFor returns the node that should get one more copy of a row. last has copies of
// the previous row.
func (c *copying) bestFor(i int, last []int) int {
	best, owner := nobody, c.rows[i].owner
	for n := range c.nodes {
		if n == owner || !c.takes(n) || slices.Contains(c.lists[i], n) {
			continue
		}
		if best == nobody || 0 > cmp.Or(
			compareBool(c.lacks(owner, n) > 0, c.lacks(owner, best) > 0),
			compareBool(slices.Contains(last, n), slices.Contains(last, best)),
			cmp.Compare(c.lacks(owner, best), c.lacks(owner, n)),
			cmp.Compare(c.count[n], c.count[best])) {
			best = n
		}
	}
	return best
}

// spread moves copies from nodes with too many to nodes with too few, if one is far off
// its quota.
func (c *copying) spread(rows []int) {
	c.setQuotas(rows)
	far := false
	for n := range c.nodes {
		far = far || c.takes(n) && off(c.count[n], c.quota[n])
	}
	if !far {
		return
	}
	for n := range c.nodes { // node by node, so that neighbouring rows stay together
		for c.takes(n) && c.due(n) > 0 && c.moveTo(n, rows) {
		}
	}
}

// moveTo moves one copy to node n from a node with too many: the copy whose move
// balances best. It reports whether it moved one.
func (c *copying) moveTo(n int, rows []int) bool {
	row, from, most := nobody, nobody, 0
	for _, i := range rows {
		owner := c.rows[i].owner
		if owner == n || slices.Contains(c.lists[i], n) {
			continue
		}
		for _, x := range c.lists[i] {
			gain := c.pairs[owner][x] - c.pairs[owner][n]
			if c.takes(x) && c.due(x) < 0 && (row == nobody || gain > most) {
				row, from, most = i, x, gain
			}
		}
	}
	if row == nobody {
		return false
	}
	c.lists[row] = without(c.lists[row], from)
	c.count[from]--
	c.pairs[c.rows[row].owner][from]--
	c.add(row, n)
	return true
}
