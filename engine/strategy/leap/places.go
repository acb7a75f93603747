package leap

import (
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// places assigns each root of a batch to a node: the owner of its shard or, if that has
// more to do than others, a node that holds a copy. Whole grains move from one to the
// other or, where gradients are not added up by grains, parts of them.
//
// It is a pure function of the batch and of what all nodes know. It uses no clock, and
// nothing that only one node has.
type places struct {
	layout  peer.Layout
	moves   bool     // there are copies, and they may be used
	whole   bool     // grains are not cut
	costs   []uint64 // of a root of each shard
	weights []uint64 // of nodes

	nodes  []int32 // of the roots
	shards []int32 // of the roots
	counts []int   // roots of each shard
	next   []int   // of each shard: the piece of its next root
	pieces []piece // shard by shard
	loads  []uint64
}

// A piece is some roots of one shard, which a node computes.
type piece struct {
	shard, node, roots int
	load               uint64
}

const (
	// unit is the largest cost of a root, and the weight of the most powerful node.
	// Values below a thousandth of that are raised to it.
	unit = 1 << 10

	// slack bounds the load above its due that a node keeps, since roots that are
	// computed elsewhere leave their neighbours: at most 1/slack of the due.
	slack = 8

	// crumbs is how many pieces a node's due may be cut into.
	crumbs = 16
)

// newPlaces returns the places of a job's roots. Where moves is false, owners compute all
// of their shards'.
func newPlaces(l *peer.Layout, deterministic, moves bool) places {
	return places{
		layout: *l, whole: deterministic,
		moves:   moves && slices.ContainsFunc(l.Holders, func(of []int) bool { return len(of) > 0 }),
		costs:   beside(l.Costs, len(l.Owners)),
		weights: beside(l.Weights, l.Nodes),
	}
}

// beside returns n numbers relative to the largest of them, which becomes the unit. No
// numbers are all the same.
func beside(numbers []uint64, n int) []uint64 {
	all := slices.Repeat([]uint64{unit}, n)
	if len(numbers) == 0 {
		return all
	}
	largest := max(1, slices.Max(numbers))
	out := max(0, bits.Len64(largest)-32) // so that no product is out of range
	for i, x := range numbers {
		all[i] = max(1, x>>out*unit/(largest>>out))
	}
	return all
}

// find sets the nodes of a batch's roots.
func (p *places) find(batch []uint32) {
	p.nodes = slices.Grow(p.nodes[:0], len(batch))[:len(batch)]
	if !p.moves {
		for i, v := range batch {
			p.nodes[i] = int32(p.layout.Owner(v))
		}
		return
	}
	p.even(p.cut(batch))
	for i, shard := range p.shards {
		at := &p.pieces[p.next[shard]]
		p.nodes[i] = int32(at.node)
		if at.roots--; at.roots == 0 {
			p.next[shard]++
		}
	}
}

// of appends the roots that a node computes, in the order of the batch.
func (p *places) of(to, batch []uint32, node int) []uint32 {
	for i, v := range batch {
		if int(p.nodes[i]) == node {
			to = append(to, v)
		}
	}
	return to
}

// cut makes the pieces, all of them their owner's, and returns the total load.
func (p *places) cut(batch []uint32) (total uint64) {
	l := &p.layout
	p.counts, p.next = cleared(p.counts, len(l.Owners)), cleared(p.next, len(l.Owners))
	p.loads = cleared(p.loads, l.Nodes)
	p.shards, p.pieces = p.shards[:0], p.pieces[:0]
	for _, v := range batch {
		shard := l.Shard(v)
		p.shards = append(p.shards, int32(shard))
		p.counts[shard]++
		total += p.costs[shard]
	}
	for shard, n := range p.counts {
		p.next[shard] = len(p.pieces)
		if n == 0 {
			continue
		}
		load, parts := uint64(n)*p.costs[shard], 1
		if !p.whole && len(l.Holders[shard]) > 0 {
			parts = min(n, 1+int(load*crumbs*uint64(l.Nodes)/total))
		}
		owner := l.Owners[shard]
		p.loads[owner] += load
		for part := range parts {
			roots := n*(part+1)/parts - n*part/parts
			p.pieces = append(p.pieces, piece{shard, owner, roots, uint64(roots) * p.costs[shard]})
		}
	}
	return total
}

// even moves pieces as long as that is an improvement. Each move makes a node faster
// that takes longer than its due, and none as slow as that was.
func (p *places) even(total uint64) {
	all := uint64(0)
	for _, w := range p.weights {
		all += w
	}
	due := total * unit / all
	for range 2 * len(p.pieces) { // a bound that is hardly ever reached
		if !p.move(due + due/slack) {
			return
		}
	}
}

// move makes the best move away from the slowest node that has any: the one after which
// the slower of both nodes takes least, the first of equals.
func (p *places) move(most uint64) bool {
	var best move
	for i := range p.pieces {
		at := &p.pieces[i]
		if before := p.time(at.node, 0); before > most && before >= best.before {
			m := move{piece: i, before: before, left: p.time(at.node, -at.load)}
			p.try(&best, m, p.layout.Owners[at.shard])
			for _, holder := range p.layout.Holders[at.shard] {
				p.try(&best, m, holder)
			}
		}
	}
	if best.before == 0 {
		return false
	}
	at := &p.pieces[best.piece]
	p.loads[at.node] -= at.load
	p.loads[best.to] += at.load
	at.node = best.to
	return true
}

// A move moves a piece to another node, with its effects.
type move struct {
	piece, to    int
	before, left uint64 // time of the piece's node, with it and without
	after        uint64 // time of the slower of both
}

// try sets best to a move to a node, if that is better.
func (p *places) try(best *move, m move, to int) {
	at := &p.pieces[m.piece]
	after := p.time(to, at.load)
	if to == at.node || after >= m.before {
		return
	}
	if m.to, m.after = to, max(after, m.left); m.before > best.before || m.after < best.after {
		*best = m
	}
}

// time returns a node's time for its load and more, in units. To take a load away, more
// is its negative, which is correct since numbers wrap around.
func (p *places) time(node int, more uint64) uint64 {
	return (p.loads[node] + more) * unit / p.weights[node]
}

// cleared returns n zeros, in the memory of a slice if that has room.
func cleared[E any](s []E, n int) []E {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
