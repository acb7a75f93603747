package leap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// copied has so many nodes hold each shard beside its owner, if there are so many.
func copied(r *rand.Rand, l peer.Layout, copies int) peer.Layout {
	l.Holders = nil
	for _, owner := range l.Owners {
		others := slices.DeleteFunc(r.Perm(l.Nodes), func(n int) bool { return n == owner })
		of := others[:min(copies, len(others))]
		slices.Sort(of)
		l.Holders = append(l.Holders, of)
	}
	return l
}

// loadsOf are what the nodes have to do of a batch, a root of each shard at its cost.
func loadsOf(d deal.Dealer, l *peer.Layout, batch []uint32) []float64 {
	all := make([]float64, l.Nodes)
	for node := range all {
		for _, g := range d.Deal(nil, batch, node) {
			for _, v := range g.Roots {
				cost := 1.0
				if l.Costs != nil {
					cost = float64(l.Costs[l.Shard(v)])
				}
				all[node] += cost
			}
		}
	}
	return all
}

// imbalance is the largest over the mean.
func imbalance(loads []float64) float64 {
	sum := 0.0
	for _, x := range loads {
		sum += x
	}
	return slices.Max(loads) * float64(len(loads)) / sum
}

func uneven(s strategy.Settings) strategy.Settings {
	return s.With("leap.balance=off")
}

// Wherever copies are, each root is dealt once, to a node that holds it, and a grain to
// one node; with leap.balance=off, or without copies, to its owner.
func TestRootsAreDealtToHolders(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	moved := map[bool]int{}
	for nodes := 1; nodes <= 7; nodes++ {
		for _, s := range []strategy.Settings{
			settings("stay", "", false), settings("stay", "", true), settings("migrate", "off", false), settings("migrate", "2", false), settings("migrate", "2", true),
		} {
			for range 30 {
				copies := r.IntN(4)
				l := copied(r, layout(r, 1+r.IntN(20), nodes), copies)
				for range l.Owners {
					l.Costs = append(l.Costs, uint64(1+r.IntN(50)))
				}
				d, off := dealer(t, l, s), dealer(t, l, uneven(s))
				b := batch(r, &l, 10+r.IntN(200))
				var all []uint32
				at := map[int]int{} // of grains
				for node := range nodes {
					for _, g := range off.Deal(nil, b, node) {
						checkGroup(t, &l, b, node, g, s.Deterministic)
					}
					for _, g := range d.Deal(nil, b, node) {
						all = append(all, g.Roots...)
						for _, v := range g.Roots {
							shard := l.Shard(v)
							if l.Owners[shard] != node && !slices.Contains(l.Holders[shard], node) {
								t.Fatalf("a root of shard %d is dealt to node %d, and is on %d and %v", shard, node, l.Owners[shard], l.Holders[shard])
							}
							if l.Owners[shard] != node {
								moved[s.Deterministic]++
							}
							if was, in := at[shard]; s.Deterministic && (in && was != node || g.Grain != shard) {
								t.Fatalf("grain %d of shard %d is on nodes %d and %d", g.Grain, shard, was, node)
							}
							at[shard] = node
						}
					}
				}
				slices.Sort(all)
				if want := slices.Sorted(slices.Values(b)); !slices.Equal(all, want) {
					t.Fatalf("%+v on %d nodes: of %v is dealt %v", s, nodes, want, all)
				}
			}
		}
	}
	if moved[false] == 0 || moved[true] == 0 {
		t.Errorf("moved are %v roots: little is shown", moved)
	}
}

// All roots are in one shard: its owner has all to do, and with copies no holder has more
// than its part and a little.
func TestOneShardsRootsAreShared(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	for _, nodes := range []int{2, 3, 5} {
		for copies := range 4 {
			l := copied(r, layout(r, 12, nodes), copies)
			l.Firsts = []uint32{0}
			for shard := range l.Owners {
				l.Firsts = append(l.Firsts, uint32(shard+1)*100)
			}
			var b []uint32
			for v := range uint32(90) {
				b = append(b, 700+v)
			}
			s := settings("stay", "", false)
			before, after := imbalance(loadsOf(dealer(t, l, uneven(s)), &l, b)), imbalance(loadsOf(dealer(t, l, s), &l, b))
			holders := 1 + len(l.Holders[7])
			t.Logf("%d nodes, %d hold the roots: the most a node does is %.2f of the mean, and was %.2f", nodes, holders, after, before)
			// What can be is N/holders; what may be more is the slack, and a crumb.
			if most := float64(nodes)/float64(holders) + 1.0/slack + 1.0/crumbs; before != float64(nodes) || after > most {
				t.Errorf("%d nodes, %d hold the roots: the most a node does is %.2f of the mean, want %.2f, and was %.2f", nodes, holders, after, most, before)
			}
		}
	}
}

// When all is dealt, no single grain would have been better off elsewhere, and never is
// the slowest node slower than if owners computed all.
func TestNoMoveIsLeft(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	better := 0
	for range 300 {
		nodes := 2 + r.IntN(5)
		l := copied(r, layout(r, 4+r.IntN(30), nodes), 1+r.IntN(3))
		for range l.Owners {
			l.Costs = append(l.Costs, uint64(1+r.IntN(30)))
		}
		s := settings("stay", "", true)
		d, b := dealer(t, l, s), batch(r, &l, 20+r.IntN(200))
		loads := loadsOf(d, &l, b)
		before := loadsOf(dealer(t, l, uneven(s)), &l, b)
		if slices.Max(loads) > slices.Max(before)*1.01 { // costs are told to a thousandth
			t.Fatalf("loads %v are worse than %v", loads, before)
		}
		if slices.Max(loads) < slices.Max(before) {
			better++
		}
		mean := 0.0
		for _, x := range loads {
			mean += x / float64(nodes)
		}
		for node := range nodes {
			for _, g := range d.Deal(nil, b, node) {
				load := float64(len(g.Roots)) * float64(l.Costs[g.Grain])
				for _, to := range append([]int{l.Owners[g.Grain]}, l.Holders[g.Grain]...) {
					if to != node && loads[node] > mean*(1+1.0/slack)*1.01 && (loads[to]+load)*1.01 < loads[node] {
						t.Fatalf("grain %d of %g would be better on node %d than on %d: %v", g.Grain, load, to, node, loads)
					}
				}
			}
		}
	}
	if better < 100 {
		t.Errorf("%d of 300 are better than before: little is shown", better)
	}
}

// What a node is given is by what it can do: next to nothing where that is a thousandth.
func TestSlowNodesAreSpared(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	for _, deterministic := range []bool{false, true} {
		l := peer.Layout{Nodes: 4}
		for shard := range 64 {
			l.Owners = append(l.Owners, shard/16)
		}
		for shard := range 65 {
			l.Firsts = append(l.Firsts, uint32(shard*50))
		}
		l = copied(r, l, 2)
		l.Weights = []uint64{1000, 1, 1000, 4000}
		loads := loadsOf(dealer(t, l, settings("stay", "", deterministic)), &l, batch(r, &l, 2400))
		for node, due := range []float64{400, 0.4, 400, 1600} {
			if loads[node] > due*(1+1.0/slack)+100 {
				t.Errorf("deterministic %v: node %d has %g roots, of which %g are due: %v", deterministic, node, loads[node], due, loads)
			}
		}
		if loads[1] > 1 || loads[3] < 1200 {
			t.Errorf("deterministic %v: roots are %v", deterministic, loads)
		}
	}
}

// What costs more counts for more, and numbers of any size are as good.
func TestCostsOfRootsCount(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	for _, scale := range []uint64{1, 1 << 40, 1 << 60} {
		l := peer.Layout{Nodes: 2, Owners: []int{0, 0, 1, 1}, Firsts: []uint32{0, 40, 80, 120, 160}, Costs: []uint64{9 * scale, 9 * scale, scale, scale}}
		l = copied(r, l, 1)
		d := dealer(t, l, settings("stay", "", false))
		of := func(node int) (n int) {
			for _, g := range d.Deal(nil, batch(r, &l, 160), node) {
				n += len(g.Roots)
			}
			return n
		}
		if a, b := of(0), of(1); a+b != 160 || a < 40 || a > 56 {
			t.Errorf("of cheap and dear roots the node with the dear ones has %d, the other %d", a, b)
		}
	}
}

// Models tour as they do without copies, and no two meet.
func TestModelsTourWithCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for nodes := 2; nodes <= 5; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			l := copied(r, layout(r, 12, nodes), 2)
			d := dealer(t, l, settings("migrate", fmt.Sprint(slots), false)).(deal.Guide)
			for range 20 {
				b := batch(r, &l, 60)
				after := map[int]bool{}
				for node := range nodes {
					groups := d.Deal(nil, b, node)
					if last := groups[len(groups)-1]; len(groups) != slots || d.After(b, last.Model) != node {
						t.Fatalf("node %d of %d: %d groups in %d slots, the last with model %d", node, nodes, len(groups), slots, last.Model)
					}
					after[groups[0].Model] = true
				}
				if len(after) != nodes {
					t.Fatalf("%d models are on %d nodes", len(after), nodes)
				}
			}
		}
	}
}

// BenchmarkDealing deals a batch to a node, with copies that may be used and not.
func BenchmarkDealing(b *testing.B) {
	r := rand.New(rand.NewPCG(15, 1))
	l := copied(r, layout(r, 64, 8), 2)
	batch := batch(r, &l, 512)
	for name, s := range map[string]strategy.Settings{"on": settings("stay", "", false), "off": uneven(settings("stay", "", false)), "grains": settings("stay", "", true)} {
		b.Run("balance="+name, func(b *testing.B) {
			d := dealer(b, l, s)
			var groups []deal.Group
			b.ReportAllocs()
			for b.Loop() {
				groups = d.Deal(groups, batch, 1)
			}
		})
	}
}

// On a good cut with its training vertices spread evenly, balance takes away what chance
// puts on one node, and costs few rows: what moves is little, and a copy is read where it
// is.
func TestBalanceCostsFewRows(t *testing.T) {
	ladder := newLadder(t)
	l := ladder.layout
	for shard, owner := range l.Owners { // each node's four shards have their copies on the three others
		l.Holders = append(l.Holders, []int{(owner + 1 + shard%4%3) % ladderNodes})
	}
	holds := func(node int, v uint32) bool {
		return l.Owner(v) == node || slices.Contains(l.Holders[l.Shard(v)], node)
	}
	var order []uint32
	for v := range l.Vertices() {
		order = append(order, v)
	}
	sample.Order(7, 1, order)
	type measure struct {
		rows, moved int
		most        float64
	}
	of := map[bool]measure{}
	const size, steps = 512, 10
	for _, off := range []bool{false, true} {
		s := settings("stay", "", false)
		if off {
			s = uneven(s)
		}
		d := dealer(t, l, s)
		var m measure
		for step := range steps {
			b := order[step*size:][:size]
			for node := range ladderNodes {
				for _, g := range d.Deal(nil, b, node) {
					for _, v := range g.Roots {
						if l.Owner(v) != node {
							m.moved++
						}
					}
					for v := range ladder.sampled(g.Roots) {
						if !holds(node, v) {
							m.rows++
						}
					}
				}
			}
			m.most = max(m.most, imbalance(loadsOf(d, &l, b)))
		}
		of[off] = m
	}
	on, off := of[false], of[true]
	t.Logf("with balance %d rows cross, %d roots of %d are moved, and a node does at most %.2f of the mean; without, %d and %.2f", on.rows, on.moved, size*steps, on.most, off.rows, off.most)
	if on.most > 1+1.0/slack+0.01 || on.most >= off.most || float64(on.rows) > 1.05*float64(off.rows) {
		t.Errorf("%+v with balance, %+v without", on, off)
	}
}
