package grappa

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

func layout(shards, size int, owners []int, nodes int) peer.Layout {
	l := peer.Layout{Nodes: nodes, Owners: owners, Firsts: []uint32{0}}
	for i := range shards {
		l.Firsts = append(l.Firsts, uint32((i+1)*size))
	}
	return l
}

// runs are owners of runs of shards.
func runs(shards, nodes int) (owners []int) {
	for i := range shards {
		owners = append(owners, i*nodes/shards)
	}
	return owners
}

// What is dealt is the same groups, or the same grains, however many nodes there are:
// the batch, without loss or repetition.
func TestGroupsAreWholeOnAnyNodes(t *testing.T) {
	const shards, size = 12, 10
	r := rand.New(rand.NewPCG(1, 3))
	for _, deterministic := range []bool{false, true} {
		o := strategy.Given(Name, "grappa.groups=4")
		o.Deterministic = deterministic
		for _, count := range []int{0, 1, 7, 120} {
			var batch []uint32
			for _, v := range r.Perm(shards * size)[:count] {
				batch = append(batch, uint32(v))
			}
			var want [][]uint32
			for nodes := 1; nodes < 8; nodes++ {
				l := layout(shards, size, runs(shards, nodes), nodes)
				d, err := Deal(l, o)
				if err != nil {
					t.Fatal(err)
				}
				var all [][]uint32
				var groups []deal.Group
				for node := range nodes {
					groups = d.Deal(groups, batch, node)
					last := -1
					for _, g := range groups {
						if len(g.Roots) == 0 || g.From != -1 || (g.Grain >= 0) != deterministic || deterministic && g.Grain <= last {
							t.Fatalf("node %d of %d has %v after grain %d", node, nodes, g, last)
						}
						last = g.Grain
						of := l.Shard(g.Roots[0]) / 3
						for _, v := range g.Roots {
							if l.Shard(v)/3 != of || deterministic && l.Shard(v) != g.Grain {
								t.Fatalf("node %d of %d has %v", node, nodes, g)
							}
						}
						all = append(all, slices.Clone(g.Roots))
					}
				}
				slices.SortFunc(all, func(a, b []uint32) int { return l.Shard(a[0]) - l.Shard(b[0]) })
				if nodes == 1 {
					want = all
				}
				if !slices.EqualFunc(all, want, slices.Equal[[]uint32]) {
					t.Fatalf("%d nodes are dealt %v, and one %v", nodes, all, want)
				}
				if dealt := slices.Sorted(slices.Values(slices.Concat(all...))); !slices.Equal(dealt, slices.Sorted(slices.Values(batch))) {
					t.Fatalf("%v was dealt as %v", batch, dealt)
				}
			}
		}
	}
}

// A group goes where most of its shards are, and to the first of those with as many.
func TestGroupsGoWhereMostOfTheirShardsAre(t *testing.T) {
	s := schedule(t, 9, given("groups=3"), 0)
	l := layout(9, 1, []int{0, 2, 2, 1, 0, 2, 1, 1, 1}, 3)
	for g, want := range []int{2, 0, 1} {
		if got := NodeOf(&l, s, g); got != want {
			t.Errorf("group %d goes to node %d, not %d", g, got, want)
		}
	}
}

func TestModelsStayWhereTheyAre(t *testing.T) {
	l := layout(4, 5, runs(4, 2), 2)
	for average, want := range map[string]bool{"": false, "1": false, "8": true} {
		d, err := Deal(l, strategy.Given(Name, "grappa.average_every="+average))
		if err != nil {
			t.Fatal(err)
		}
		guide, is := d.(deal.Guide)
		if is != want {
			t.Errorf("average_every=%s: a guide %v", average, is)
		}
		for model := range 2 {
			if is && guide.After([]uint32{1, 2}, model) != model {
				t.Errorf("model %d travels", model)
			}
		}
	}
}

func TestWhatCanNotBeDealt(t *testing.T) {
	l := layout(4, 5, runs(4, 2), 2)
	for want, values := range map[string][]string{
		"grappa.groups=5: each needs a shard":     {"grappa.groups=5"},
		"grappa.depth=2: a group that is strict ": {"grappa.loader=strict", "grappa.depth=2"},
	} {
		if _, err := Deal(l, strategy.Given(Name, values...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDealingAllocatesNothing(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		l := layout(16, 10, runs(16, 3), 3)
		d, err := Deal(l, strategy.Settings{Strategy: Name, Deterministic: deterministic})
		if err != nil {
			t.Fatal(err)
		}
		var batch []uint32
		for v := range uint32(160) {
			batch = append(batch, v*7%160)
		}
		var groups []deal.Group
		if got := testing.AllocsPerRun(10, func() { groups = d.Deal(groups, batch, 1) }); got > 0 {
			t.Errorf("deterministic %v: a batch takes %v allocations", deterministic, got)
		}
	}
}
