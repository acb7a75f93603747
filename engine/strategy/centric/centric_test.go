package centric

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

func layout(shards, size, nodes int) peer.Layout {
	l := peer.Layout{Nodes: nodes, Firsts: []uint32{0}}
	for i := range shards {
		l.Owners = append(l.Owners, i*nodes/shards)
		l.Firsts = append(l.Firsts, uint32((i+1)*size))
	}
	return l
}

// batch is distinct vertices in an order of their own.
func batch(r *rand.Rand, l *peer.Layout, size int) []uint32 {
	var all []uint32
	for _, v := range r.Perm(int(l.Vertices()))[:size] {
		all = append(all, uint32(v))
	}
	return all
}

func TestSlicesInTheOrderOfTheBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for nodes := 1; nodes < 8; nodes++ {
		l := layout(10, 10, nodes)
		d, err := Deal(l, strategy.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		var groups []deal.Group
		for _, size := range []int{0, 1, nodes - 1, nodes, 50, 99} {
			b := batch(r, &l, size)
			var all []uint32
			for node := range nodes {
				groups = d.Deal(groups, b, node)
				if len(groups) != 1 || groups[0].Grain != -1 || groups[0].From != -1 {
					t.Fatalf("node %d of %d has %v", node, nodes, groups)
				}
				if n := len(groups[0].Roots); n < size/nodes || n > size/nodes+1 {
					t.Errorf("node %d of %d has %d roots of %d", node, nodes, n, size)
				}
				all = append(all, groups[0].Roots...)
			}
			if !slices.Equal(all, b) {
				t.Errorf("%v was dealt as %v", b, all)
			}
		}
	}
}

func TestWholeGrainsInRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for nodes := 1; nodes < 8; nodes++ {
		l := layout(16, 10, nodes)
		d, err := Deal(l, strategy.Settings{Deterministic: true})
		if err != nil {
			t.Fatal(err)
		}
		var groups []deal.Group
		for _, size := range []int{0, 1, nodes - 1, 80, 160} {
			b := batch(r, &l, size)
			dealt, last := 0, -1
			for node := range nodes {
				groups = d.Deal(groups, b, node)
				load := 0
				for _, g := range groups {
					want := slices.DeleteFunc(slices.Clone(b), func(v uint32) bool { return l.Shard(v) != g.Grain })
					if len(want) == 0 || !slices.Equal(g.Roots, want) || g.Grain <= last {
						t.Fatalf("node %d of %d: shard %d after %d has %v, want %v", node, nodes, g.Grain, last, g.Roots, want)
					}
					last = g.Grain
					load += len(g.Roots)
				}
				if load > size/nodes+10 {
					t.Errorf("node %d of %d has %d roots of %d", node, nodes, load, size)
				}
				dealt += load
			}
			if dealt != size {
				t.Errorf("%d roots of %d were dealt to %d nodes", dealt, size, nodes)
			}
		}
	}
}

func TestDealingAllocatesNothing(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		l := layout(16, 10, 3)
		d, err := Deal(l, strategy.Settings{Deterministic: deterministic})
		if err != nil {
			t.Fatal(err)
		}
		b := batch(rand.New(rand.NewPCG(3, 1)), &l, 120)
		var groups []deal.Group
		if got := testing.AllocsPerRun(10, func() { groups = d.Deal(groups, b, 1) }); got > 0 {
			t.Errorf("deterministic %v: a batch takes %v allocations", deterministic, got)
		}
	}
}
