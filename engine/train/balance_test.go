package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// copied has so many nodes after a shard's owner hold it too, if there are so many.
func (m *mesh) copied(copies int) *mesh {
	nodes := len(m.names)
	m.holders = make([][]int, len(m.owners))
	for shard, owner := range m.owners {
		for n := range min(copies, nodes-1) {
			m.holders[shard] = append(m.holders[shard], (owner+1+n)%nodes)
		}
		slices.Sort(m.holders[shard])
	}
	return m
}

// away counts the roots of a slot that are another node's.
func (t *trainer) away(s *slot) (n int) {
	for i := range s.groups {
		for _, v := range s.groups[i].Roots {
			if t.shared.layout.Owner(v) != t.shared.work.Self {
				n++
			}
		}
	}
	return n
}

// Who of the holders computes a root changes no gradient.
func TestBalanceChangesNoGradient(t *testing.T) {
	shards := tiny(t, 90, 6)
	away := map[bool]int{}
	for _, model := range []string{"sage", "gat"} {
		r := exactRecipe(model)
		want := started(t, r, shards, wide(Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for copies := 1; copies <= 3; copies++ {
				for how, sharing := range sharings(nodes) {
					for _, off := range []bool{false, true} {
						r.Sharing = sharing
						r.Sharing.Leap.Uneven, r.Sharing.Topology = off, []string{"replicated", "sharded"}[copies%2]
						m := newMesh(nodes, uneven(len(shards), nodes)).copied(copies)
						all := m.start(t, r, shards, wide(Options{Threads: 1}))
						alike(t, fmt.Sprintf("%s on %d nodes by %s with %d copies, balance off %v", model, nodes, how, copies, off), m, all, want, 1e-10)
						for _, tr := range all {
							if tr.shared != nil && how != "centric" {
								away[off] += tr.away(tr.batches.slots[0])
							}
						}
					}
				}
			}
		}
	}
	if away[false] == 0 || away[true] > 0 {
		t.Errorf("computed by others than their owners are %v roots, by whether balance is off", away)
	}
}

// Nor any bit where gradients are added up by grains.
func TestBalanceChangesNoBit(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Epochs = 2
	r.Sharing.Deterministic = true
	_, one := mustRun(t, r, shards, Options{Threads: 1})
	for _, nodes := range []int{1, 2, 3, 5} {
		for copies := 1; copies <= 3; copies++ {
			for way, sharing := range ways() {
				for _, off := range []bool{false, true} {
					if way == "centric" {
						continue
					}
					r.Sharing = sharing
					r.Sharing.Deterministic, r.Sharing.Leap.Uneven = true, off
					_, told := newMesh(nodes, uneven(len(shards), nodes)).copied(copies).mustRun(t, r, shards, Options{Threads: 1})
					for node, got := range told {
						if learnt(got) != learnt(one) {
							t.Errorf("node %d of %d by %s with %d copies, balance off %v:\n%s\nand one node\n%s", node, nodes, way, copies, off, learnt(got), learnt(one))
						}
					}
				}
			}
		}
	}
}

// Whoever dies meanwhile, and whoever holds what afterwards.
func TestBalanceOutlivesItsNodes(t *testing.T) {
	shards := communities(t, 1500)
	random := rand.New(rand.NewPCG(5, 6))
	r := small("sage")
	r.Sharing.Deterministic = true
	_, one := mustRun(t, r, shards, Options{Threads: 1})
	for _, way := range []string{"leap", "migrate"} {
		r.Sharing = ways()[way]
		r.Sharing.Deterministic = true
		folders := make([]string, 5)
		for i := range folders {
			folders[i] = t.TempDir()
		}
		told := map[int]Epoch{}
		for runs := 0; ; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 5}[runs%3]
			r.Sharing.Leap.Uneven = runs%3 == 2
			m := newMesh(nodes, uneven(len(shards), nodes)).copied(1 + random.IntN(3))
			ctx := cancelAfter(t, m, int64(nodes*(nodes-1))*(10+random.Int64N(25)))
			_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%5]
			})
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			for _, of := range epochs {
				for _, e := range of {
					told[e.Epoch] = e
				}
			}
			if err == nil {
				if runs < 3 {
					t.Errorf("%s was interrupted %d times only", way, runs)
				}
				break
			}
		}
		var all []Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, told[n])
		}
		if learnt(all) != learnt(one) {
			t.Errorf("%s:\n%s\nand undisturbed\n%s", way, learnt(all), learnt(one))
		}
	}
}

// Models that update themselves meet the roots of their slices, wherever those are
// computed, and are found where they were last.
func TestLocalUpdatesWithBalance(t *testing.T) {
	shards := tiny(t, 150, 6)
	away := 0
	for nodes := 2; nodes <= 3; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			r := exactRecipe("sage")
			r.EvalEvery, r.Epochs = 1<<20, 1<<20
			m := newMesh(nodes, uneven(len(shards), nodes)).copied(1)
			want := simulate(t, r, shards, m.owners, nodes, slots, 3)
			r.Sharing = updating(fmt.Sprint(slots), 3)
			all := m.start(t, r, shards, wide(Options{Threads: 1}))
			d, err := leap.Strategy{}.New(all[0].shared.layout, r.Sharing)
			if err != nil {
				t.Fatal(err)
			}
			at := map[uint32]int{}
			want.deal = func(batch []uint32) {
				for node := range nodes {
					for _, g := range d.Deal(nil, batch, node) {
						for _, v := range g.Roots {
							at[v] = node
							if all[0].shared.layout.Owner(v) != node {
								away++
							}
						}
					}
				}
			}
			want.of = func(v uint32) int { return at[v] }
			for epoch := 1; epoch < 3; epoch++ {
				want.epoch(epoch, r.Rate)
				if err := m.together(t, func(ctx context.Context, node int) error { return all[node].epoch(ctx) }); err != nil {
					t.Fatal(err)
				}
				for node, tr := range all {
					sameModel(t, fmt.Sprintf("%d nodes, %d slots, epoch %d, node %d", nodes, slots, epoch, node), tr, &want.models[0])
				}
			}
		}
	}
	if away == 0 {
		t.Error("owners compute all: nothing is shown")
	}
}

// skewed has all training vertices in one shard.
func skewed(shards []*graph.Shard, in int) (all []*graph.Shard) {
	for i, s := range shards {
		of := *s
		of.Marks = nil
		for _, marks := range s.Marks {
			marks = slices.Clone(marks)
			for row := range marks {
				if i == in {
					marks[row] = graph.Train
				} else if marks[row] == graph.Train {
					marks[row] = graph.Unmarked
				}
			}
			of.Marks = append(of.Marks, marks)
		}
		all = append(all, &of)
	}
	return all
}

// Where all training vertices are in one shard, its owner samples and computes all there
// is; with copies all holders do, and read what they hold themselves.
func TestSkewedTrainingVerticesAreShared(t *testing.T) {
	shards := skewed(communities(t, 3000), 1)
	r := small("sage")
	r.Batch = 120
	for _, nodes := range []int{2, 3, 5} {
		for _, mode := range []string{"stay", "migrate"} {
			most := map[bool]float64{}
			for _, off := range []bool{false, true} {
				r.Sharing = strategy.Settings{Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: mode, Uneven: off}}
				m := newMesh(nodes, []int{0, 1, 0, 1, 0}).copied(nodes)
				all := m.start(t, r, shards, Options{Threads: 1})
				for step := range 3 {
					edges := make([]float64, nodes)
					err := m.each(func(node int) error {
						_, err := all[node].one(t.Context(), 1, step)
						edges[node] = float64(all[node].batches.slots[0].edges())
						if remote := all[node].batches.slots[0].remote; err == nil && remote > 0 {
							return fmt.Errorf("node %d asks for %d rows and holds all", node, remote)
						}
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					sum := 0.0
					for _, n := range edges {
						sum += n
					}
					most[off] = max(most[off], slices.Max(edges)*float64(nodes)/sum)
				}
			}
			t.Logf("%d nodes, %s: the most edges of a node are %.2f times the mean, and %.2f without balance", nodes, mode, most[false], most[true])
			if most[true] < float64(nodes)-1e-9 || most[false] > 1.3 {
				t.Errorf("%d nodes, %s: the most edges of a node are %.2f times the mean, and %.2f without balance", nodes, mode, most[false], most[true])
			}
		}
	}
}

// What all nodes must derive alike does not depend on what a node holds, nor on whether
// it has edges of others.
func TestCostsAreTheSameOnAllNodes(t *testing.T) {
	shards := communities(t, 1500)
	whole := &replica.Replica{Shards: shards, Summaries: make([]*sample.Summary, len(shards))}
	r := small("sage")
	for _, fanouts := range [][]int{{5, 3}, nil} {
		r.Fanouts = fanouts
		asked := fanouts
		if fanouts == nil {
			asked = []int{0, 0}
		}
		want := costsOf(whole, asked)
		for _, topology := range []string{"replicated", "sharded"} {
			r.Sharing = strategy.Settings{Strategy: strategy.Leap, Topology: topology}
			for node, tr := range newMesh(3, uneven(len(shards), 3)).copied(1).start(t, r, shards, Options{Threads: 1}) {
				if got := tr.shared.layout.Costs; !slices.Equal(got, want) || slices.Min(got) == slices.Max(got) && fanouts == nil {
					t.Errorf("node %d, %s, fan-outs %v: %v, want %v", node, topology, fanouts, got, want)
				}
			}
		}
	}
	// 4 edges to each of 2 vertices, 1 to each of 2 more.
	two := &replica.Replica{
		Shards:    []*graph.Shard{{Vertices: 2, Total: 4, Indices: make([]int32, 8)}, {Vertices: 2, Total: 4}},
		Summaries: []*sample.Summary{nil, {Edges: 2}},
	}
	for _, c := range []struct{ fanouts, want []int }{
		{[]int{0}, []int{5, 2}}, {[]int{3}, []int{4, 2}}, {[]int{0, 0}, []int{1 + 4*7/2, 1 + 7/2}}, {[]int{3, 2}, []int{10, 4}}, {nil, []int{1, 1}},
	} {
		for i, cost := range costsOf(two, c.fanouts) {
			if int(cost/256) != c.want[i] {
				t.Errorf("fan-outs %v: a root of shard %d costs %g, want %d", c.fanouts, i, float64(cost)/256, c.want[i])
			}
		}
	}
}

func TestWorkThatCantBeIsRefused(t *testing.T) {
	for name, w := range map[string]strategy.Work{
		"too few lists":   {Holders: [][]int{{1}}},
		"no such node":    {Holders: [][]int{{2}, nil}},
		"below them":      {Holders: [][]int{{-1}, nil}},
		"the owner again": {Holders: [][]int{nil, {1}}},
		"one twice":       {Holders: [][]int{{1, 1}, nil}},
		"weights":         {Weights: []uint64{1}},
	} {
		w.Nodes, w.Owners = []string{"a", "b"}, []int{0, 1}
		s := &shared{work: w}
		if err := s.check([]*graph.Shard{{}, {}}); err == nil || !strings.Contains(err.Error(), "of a job's 2 nodes") && !strings.Contains(err.Error(), "2 shards and 2 nodes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With other nodes, though as many, slots are looked for anew; with the same, in another
// order, the search goes on.
func TestSlotsAreLookedForAnewWithOtherNodes(t *testing.T) {
	r := small("gcn")
	r.Sharing = ways()["tuned"]
	found := strategy.Tuning{Nodes: 3, Members: members([]string{"n0", "n1", "n2"}), Slots: 2, Best: 1.5, Epochs: 3, Frozen: true}
	for name, c := range map[string]struct {
		names []string
		want  int
	}{
		"the same":        {[]string{"n0", "n1", "n2"}, 2},
		"another order":   {[]string{"n2", "n0", "n1"}, 2},
		"another of them": {[]string{"n0", "n1", "n3"}, 3},
	} {
		folders := left(t, newMesh(3, uneven(5, 3)), r, func(_ int, tr *learner) { tr.at.Tuning = found })
		m := newMesh(3, uneven(5, 3))
		m.names = c.names
		for node, tr := range again(t, m, r, folders) {
			if got := tr.shared.dealer.Tuning(); got.Slots != c.want || got.Frozen != (c.want == 2) || got.Members != members(c.names) {
				t.Errorf("%s: node %d goes on with %+v", name, node, got)
			}
		}
	}
}
