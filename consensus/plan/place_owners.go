package plan

import (
	"cmp"
	"math"
	"slices"
)

// owning distributes the movable shards among the nodes that may own them.
type owning struct {
	*board
	free   []int // rows, in their order
	count  []int // shards owned, by node
	quota  []int
	most   []int // by capacity
	strict bool  // the capacities suffice for all
}

// assignOwners gives every movable row an owner.
func (b *board) assignOwners() {
	rows := b.movable()
	o := &owning{board: b, count: make([]int, len(b.nodes)), quota: make([]int, len(b.nodes)), most: make([]int, len(b.nodes))}
	if len(rows) == 0 {
		return
	}
	largest := uint64(1)
	for _, i := range rows {
		if n := b.rows[i].owner; n != nobody {
			o.count[n]++
		} else {
			o.free = append(o.free, i)
		}
		largest = max(largest, b.d.Shards[i].Bytes)
	}
	var claims []claim
	room := 0
	for n, p := range b.nodes {
		if !b.eligible[n] {
			continue
		}
		o.most[n] = len(rows)
		if p.Capacity > 0 {
			o.most[n] = int(min(p.Capacity/largest, uint64(len(rows))))
		}
		room += o.most[n]
		claims = append(claims, claim{node: n, weight: p.Weight, most: o.most[n], has: o.count[n]})
	}
	o.strict = room >= len(rows)
	for i, part := range divide(len(rows), claims) {
		o.quota[claims[i].node] = part
	}
	switch {
	case len(o.free) == 0 && o.even():
	case o.toHolders():
	case o.alone(rows):
		o.layOut(rows)
	default:
		o.evenOut()
	}
}

// even reports whether every node is close to its quota.
func (o *owning) even() bool {
	for n, quota := range o.quota {
		if o.eligible[n] && (off(o.count[n], quota) || o.strict && o.count[n] > max(o.most[n], quota)) {
			return false
		}
	}
	return true
}

// toHolders assigns the free rows to nodes that already hold them, if that leaves every
// node close to its quota. Otherwise it changes nothing. It reports whether it assigned
// them.
func (o *owning) toHolders() bool {
	if len(o.free) == 0 {
		return false
	}
	before := slices.Clone(o.count)
	for _, i := range o.free {
		r := o.rows[i]
		best := nobody
		better := func(a, b int) bool {
			return 0 > cmp.Or(
				compareBool(o.count[a] < o.quota[a], o.count[b] < o.quota[b]),
				compareBool(o.ownerAt(i-1) == a, o.ownerAt(i-1) == b),
				cmp.Compare(o.quota[b]-o.count[b], o.quota[a]-o.count[a]),
				cmp.Compare(a, b))
		}
		for _, n := range r.holders {
			if o.eligible[n] && (best == nobody || better(n, best)) {
				best = n
			}
		}
		if best == nobody {
			break
		}
		r.owner = best
		o.count[best]++
	}
	if o.rows[o.free[len(o.free)-1]].owner != nobody && o.even() {
		return true
	}
	o.count = before
	for _, i := range o.free {
		o.rows[i].owner = nobody
	}
	return false
}

// ownerAt returns the owner of a row, or nobody beyond the ends.
func (o *owning) ownerAt(i int) int {
	if i < 0 || i >= len(o.rows) {
		return nobody
	}
	return o.rows[i].owner
}

// alone reports whether all rows have the same owner and holders.
func (o *owning) alone(rows []int) bool {
	for _, i := range rows {
		r := o.rows[i]
		if r.owner != o.rows[rows[0]].owner || !slices.Equal(r.holders, o.rows[rows[0]].holders) {
			return false
		}
	}
	return true
}

// layOut assigns runs: first to the present owner, then to the others by id.
func (o *owning) layOut(rows []int) {
	first := o.rows[rows[0]].owner
	give := func(n int) {
		for _, i := range rows[:o.quota[n]] {
			o.rows[i].owner = n
		}
		rows = rows[o.quota[n]:]
	}
	if first != nobody {
		give(first)
	}
	for n := range o.nodes {
		if n != first {
			give(n)
		}
	}
}

// evenOut brings every node to exactly its quota: it first assigns the free rows, then
// moves rows from nodes that have too many. It moves no other rows.
func (o *owning) evenOut() {
	for _, free := range []bool{true, false} {
		for {
			best, found := o.bestGift(free)
			if !found {
				break
			}
			for i := best.from; i < best.from+best.rows; i++ {
				if o.rows[i].owner != nobody {
					o.count[o.rows[i].owner]--
				}
				o.rows[i].owner = best.to
			}
			o.count[best.to] += best.rows
		}
	}
}

// gift is a run of neighbouring rows for a new owner.
type gift struct {
	from, rows, to int
	runs           int // how many runs it adds
	copies         int // rows that the new owner has to fetch
	lonely         int // 0 if a later gift from a neighbouring run could join it
}

// less orders gifts, the best first. Free rows go first where they need not be fetched.
// Otherwise fewer runs go first, because every run boundary adds to the cut for as long
// as it exists.
func (a gift) less(b gift, free bool) bool {
	fetch := 0
	if free {
		fetch = cmp.Compare(a.copies*b.rows, b.copies*a.rows)
	}
	return 0 > cmp.Or(fetch, cmp.Compare(a.runs, b.runs), cmp.Compare(a.copies*b.rows, b.copies*a.rows),
		cmp.Compare(a.lonely, b.lonely), cmp.Compare(b.rows, a.rows), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

// bestGift considers both ends of every run that has rows to give.
func (o *owning) bestGift(free bool) (best gift, found bool) {
	neediest := nobody
	for n := range o.nodes {
		if o.due(n) > 0 && (neediest == nobody || o.due(n) > o.due(neediest)) {
			neediest = n
		}
	}
	if neediest == nobody {
		return best, false
	}
	for first := 0; first < len(o.rows); {
		end := o.endOfRun(first)
		giver, spare := o.rows[first].owner, math.MaxInt
		if giver != nobody {
			spare = -o.due(giver)
		}
		if o.rows[first].movable && (giver == nobody) == free && spare > 0 {
			for _, to := range o.receivers(first, end, neediest) {
				n := min(spare, o.due(to), end-first)
				for _, from := range []int{first, end - n} {
					g := o.gift(from, n, first, end, to)
					if !found || g.less(best, free) {
						best, found = g, true
					}
				}
			}
		}
		first = end
	}
	return best, found
}

// due returns how many shards a node lacks. It is negative if the node has too many.
func (o *owning) due(n int) int { return o.quota[n] - o.count[n] }

// endOfRun returns the end of a run. Free rows belong to one run if the same nodes hold
// them.
func (o *owning) endOfRun(first int) int {
	a, end := o.rows[first], first+1
	for ; end < len(o.rows); end++ {
		b := o.rows[end]
		if b.owner != a.owner || b.movable != a.movable || a.owner == nobody && !slices.Equal(a.holders, b.holders) {
			break
		}
	}
	return end
}

// receivers lists the candidates for a part of this run: the owners beside it, the
// holders of its ends, and the node that lacks most.
func (o *owning) receivers(first, end, neediest int) []int {
	list := slices.Concat([]int{neediest, o.ownerAt(first - 1), o.ownerAt(end)}, o.rows[first].holders, o.rows[end-1].holders)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(n int) bool { return n == nobody || o.due(n) <= 0 })
}

func (o *owning) gift(from, n, first, end, to int) gift {
	g := gift{from: from, rows: n, to: to, lonely: 1}
	for i := from; i < from+n; i++ {
		if !o.rows[i].holds(to) {
			g.copies++
		}
	}
	// The gift adds a run, minus one if it takes the whole of the giver's run, and
	// minus one for each neighbouring run that it joins.
	g.runs = 1
	if n == end-first {
		g.runs--
	}
	for _, beside := range []int{from - 1, from + n} {
		switch who := o.ownerAt(beside); {
		case who == to && who != nobody:
			g.runs--
		case (beside < first || beside >= end) && who != nobody && o.due(who) < 0:
			g.lonely = 0
		}
	}
	return g
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
