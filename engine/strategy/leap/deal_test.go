package leap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// layout is a graph of uneven shards whose owners are strewn: some nodes have none.
func layout(r *rand.Rand, shards, nodes int) peer.Layout {
	l := peer.Layout{Nodes: nodes, Firsts: []uint32{0}}
	without := r.IntN(nodes + 2)
	for range shards {
		owner := r.IntN(nodes)
		if owner == without {
			owner = (owner + 1) % nodes
		}
		l.Owners = append(l.Owners, owner)
		l.Firsts = append(l.Firsts, l.Firsts[len(l.Firsts)-1]+1+uint32(r.IntN(20)))
	}
	return l
}

func batch(r *rand.Rand, l *peer.Layout, size int) []uint32 {
	n := int(l.Vertices())
	all := make([]uint32, 0, n)
	for _, v := range r.Perm(n)[:min(size, n)] {
		all = append(all, uint32(v))
	}
	return all
}

func dealer(t testing.TB, l peer.Layout, s strategy.Settings) deal.Dealer {
	t.Helper()
	d, err := Deal(l, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func settings(mode, merge string, deterministic bool) strategy.Settings {
	s := strategy.Given("leap", "leap.mode="+mode, "leap.merge="+merge)
	s.Deterministic = deterministic
	return s
}

// Whatever the mode, the slots, the nodes and the batch: each root is dealt once, to
// its owner, and what is meant to be a grain is one.
func TestNoRootIsLostOrDoubled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var groups []deal.Group
	for nodes := 1; nodes <= 7; nodes++ {
		modes := []strategy.Settings{
			settings("stay", "", false), settings("stay", "", true), settings("", "", false),
			settings("migrate", "", false), settings("migrate", "off", false), settings("migrate", "off", true),
		}
		for slots := 1; slots <= nodes; slots++ {
			modes = append(modes, settings("migrate", strconv.Itoa(slots), false), settings("migrate", strconv.Itoa(slots), true))
		}
		for range 20 {
			l := layout(r, 1+r.IntN(20), nodes)
			for _, s := range modes {
				d := dealer(t, l, s)
				b := batch(r, &l, []int{0, r.IntN(nodes), nodes, 10 + r.IntN(200)}[r.IntN(4)])
				whole := slices.Clone(b)
				var all []uint32
				for node := range nodes {
					groups = d.Deal(groups, b, node)
					for _, g := range groups {
						checkGroup(t, &l, b, node, g, s.Deterministic)
						all = append(all, g.Roots...)
					}
				}
				slices.Sort(all)
				if !slices.Equal(b, whole) {
					t.Fatalf("%+v on %d nodes: the batch itself was changed", s, nodes)
				}
				if slices.Sort(whole); !slices.Equal(all, whole) {
					t.Fatalf("%+v on %d nodes: of %v is dealt %v", s, nodes, whole, all)
				}
			}
		}
	}
}

func checkGroup(t *testing.T, l *peer.Layout, batch []uint32, node int, g deal.Group, deterministic bool) {
	t.Helper()
	for _, v := range g.Roots {
		if l.Owner(v) != node {
			t.Fatalf("root %d of node %d is dealt to node %d", v, l.Owner(v), node)
		}
	}
	if deterministic != (g.Grain >= 0) && len(g.Roots) > 0 {
		t.Fatalf("deterministic %v, and a group of grain %d", deterministic, g.Grain)
	}
	if g.Grain >= 0 {
		want := slices.DeleteFunc(slices.Clone(batch), func(v uint32) bool { return l.Shard(v) != g.Grain })
		if len(want) == 0 || !slices.Equal(g.Roots, want) {
			t.Fatalf("grain %d is %v, want %v", g.Grain, g.Roots, want)
		}
	}
}

// At stop after stop each node has another model, which comes from where it was.
func TestModelsTourWithoutMeeting(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for nodes := 1; nodes <= 7; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			for range 20 {
				l := layout(r, 1+r.IntN(20), nodes)
				deterministic := r.IntN(2) == 0
				d := dealer(t, l, settings("migrate", strconv.Itoa(slots), deterministic))
				b := batch(r, &l, r.IntN(60))
				at, hops := map[int]int{}, 0 // where each model was last
				stops := make([][]deal.Group, nodes)
				for node := range nodes {
					stops[node] = d.Deal(nil, b, node)
				}
				for slot := range slots {
					now := map[int]int{}
					for node := range nodes {
						of := slices.DeleteFunc(slices.Clone(stops[node]), func(g deal.Group) bool { return g.Slot != slot })
						if len(of) == 0 || !deterministic && len(of) > 1 {
							t.Fatalf("node %d of %d has %d groups in slot %d", node, nodes, len(of), slot)
						}
						for i, g := range of {
							from := -1
							if slot > 0 && i == 0 {
								from = at[g.Model]
								hops++
							}
							if g.From != from || g.Model != of[0].Model {
								t.Fatalf("node %d of %d, slot %d: model %d from node %d, want %d", node, nodes, slot, g.Model, g.From, from)
							}
							if from == node {
								t.Fatalf("node %d takes a model from itself", node)
							}
						}
						now[of[0].Model] = node
					}
					if len(now) != nodes {
						t.Fatalf("slot %d: models are at %v", slot, now)
					}
					at = now
				}
				if hops != nodes*(slots-1) {
					t.Errorf("%d hops of models on %d nodes in %d slots", hops, nodes, slots)
				}
				for _, groups := range stops {
					if !slices.IsSortedFunc(groups, func(a, b deal.Group) int { return a.Slot - b.Slot }) {
						t.Error("groups are not in the order in which they are computed")
					}
				}
			}
		}
	}
}

// merged is the schedule as the sheet has it, in the plainest way: for each kept column
// the roots of each node.
func merged(l *peer.Layout, batch []uint32, slots int) (kept []int, roots [][][]uint32) {
	n := l.Nodes
	group := func(model, node int) (of []uint32) {
		for i, v := range batch {
			if i >= len(batch)*model/n && i < len(batch)*(model+1)/n && l.Owner(v) == node {
				of = append(of, v)
			}
		}
		return of
	}
	for s := range n {
		kept = append(kept, s)
	}
	for len(kept) > slots {
		drop, least := 0, len(batch)+1
		for i, s := range kept {
			for m := range n {
				if size := len(group((m+s)%n, m)); size < least {
					drop, least = i, size
				}
			}
		}
		kept = append(kept[:drop], kept[drop+1:]...)
	}
	for m := range n {
		var pool []uint32
		mine, total := make([][]uint32, len(kept)), 0
		for d := range n {
			g := group(d, m)
			total += len(g)
			if j := slices.Index(kept, (d-m+n)%n); j >= 0 {
				mine[j] = g
			} else {
				pool = append(pool, g...)
			}
		}
		for d := range n {
			j := slices.Index(kept, (d-m+n)%n)
			for j >= 0 && len(pool) > 0 && len(mine[j]) < total/slots+1 {
				mine[j], pool = append(mine[j], pool[0]), pool[1:]
			}
		}
		roots = append(roots, mine)
	}
	return kept, roots
}

func TestMergingIsTheSheets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var groups []deal.Group
	for nodes := 1; nodes <= 7; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			for range 20 {
				l := layout(r, 1+r.IntN(20), nodes)
				d := dealer(t, l, settings("migrate", strconv.Itoa(slots), false))
				b := batch(r, &l, r.IntN(200))
				kept, want := merged(&l, b, slots)
				for node := range nodes {
					groups = d.Deal(groups, b, node)
					for j, g := range groups {
						if g.Model != (node+kept[j])%nodes || !slices.Equal(g.Roots, want[node][j]) {
							t.Fatalf("node %d of %d, slot %d of column %d: model %d with %v, want %v", node, nodes, j, kept[j], g.Model, g.Roots, want[node][j])
						}
					}
				}
			}
		}
	}
}

// Grains fill slots evenly.
func TestGrainsFillSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	l := peer.Layout{Nodes: 4, Firsts: []uint32{0}}
	for shard := range 64 {
		l.Owners = append(l.Owners, shard/16)
		l.Firsts = append(l.Firsts, uint32((shard+1)*10))
	}
	d := dealer(t, l, settings("migrate", "3", true))
	b := batch(r, &l, 500)
	for node := range 4 {
		sizes, all := [3]int{}, 0
		for _, g := range d.Deal(nil, b, node) {
			sizes[g.Slot] += len(g.Roots)
			all += len(g.Roots)
		}
		if least, most := slices.Min(sizes[:]), slices.Max(sizes[:]); least < all/3-10 || most > all/3+10 {
			t.Errorf("node %d: slots of %v roots", node, sizes)
		}
	}
}

func TestWhatAutoIs(t *testing.T) {
	l := layout(rand.New(rand.NewPCG(5, 1)), 10, 3)
	for name, c := range map[string]struct {
		s       strategy.Settings
		touring bool
	}{
		"by itself":   {settings("", "", false), false},
		"by its name": {settings("auto", "auto", false), false},
		"with slots":  {settings("", "2", false), true},
		"unmerged":    {settings("", "off", false), true},
		"migrate":     {settings("migrate", "", false), true},
		"stay":        {settings("stay", "", false), false},
	} {
		if _, touring := dealer(t, l, c.s).(*migration); touring != c.touring {
			t.Errorf("%s: touring %v", name, touring)
		}
	}
	if _, err := Deal(l, strategy.Given("leap", "leap.mode=stay", "leap.sync_every=4")); err == nil || !strings.Contains(err.Error(), "leap.sync_every=4") {
		t.Errorf("local updates of models that stay: %v", err)
	}
}

func TestDealingAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	l := copied(r, layout(r, 20, 4), 2)
	b := batch(r, &l, 100)
	for _, s := range []strategy.Settings{
		settings("stay", "", false), settings("stay", "", true), settings("migrate", "2", false), settings("migrate", "2", true),
	} {
		t.Run(fmt.Sprintf("%s %v", s.Values["leap.mode"], s.Deterministic), func(t *testing.T) {
			d := dealer(t, l, s)
			var groups []deal.Group
			if got := testing.AllocsPerRun(10, func() { groups = d.Deal(groups, b, 1) }); got > 0 {
				t.Errorf("a batch takes %v allocations", got)
			}
		})
	}
}

// After a step each model is where its last slot was, whatever was dealt meanwhile.
func TestWhereModelsAreAfterAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for nodes := 1; nodes <= 5; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			l := layout(r, 1+r.IntN(20), nodes)
			d := dealer(t, l, settings("migrate", strconv.Itoa(slots), false)).(deal.Guide)
			for range 20 {
				b := batch(r, &l, r.IntN(60))
				for node := range nodes {
					groups := d.Deal(nil, b, node)
					d.Deal(nil, batch(r, &l, 50), node)
					last := groups[len(groups)-1]
					if got := d.After(b, last.Model); got != node {
						t.Errorf("%d nodes, %d slots: model %d is on node %d, and should be on %d", nodes, slots, last.Model, got, node)
					}
				}
			}
		}
	}
}

// Models that update themselves have as many slots as nodes, if none were given.
func TestSlotsOfLocalUpdates(t *testing.T) {
	l := layout(rand.New(rand.NewPCG(8, 1)), 10, 4)
	for merge, want := range map[string]int{"": 4, "off": 4, "2": 2} {
		s := strategy.Given("leap", "leap.merge="+merge, "leap.sync_every=3")
		if got := slots(dealer(t, l, s), 9, 8, 7, 6); slices.Max(got) != want || slices.Min(got) != want {
			t.Errorf("leap.merge=%s: %v slots", merge, got)
		}
	}
}
