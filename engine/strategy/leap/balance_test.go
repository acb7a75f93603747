package leap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// away counts the roots of a slot that are another node's.
func awayOf(t *train.Trainer, s *slot.Slot) (n int) {
	for i := range s.Groups {
		for _, v := range s.Groups[i].Roots {
			if t.Session.Layout.Owner(v) != t.Session.Work.Self {
				n++
			}
		}
	}
	return n
}

// Who of the holders computes a root changes no gradient.
func TestBalanceChangesNoGradient(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	away := map[bool]int{}
	for _, model := range []string{"sage", "gat"} {
		r := traintest.ExactRecipe(model)
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for copies := 1; copies <= 3; copies++ {
				for how, sharing := range traintest.Sharings(nodes) {
					for _, off := range []bool{false, true} {
						r.Sharing = sharing
						r.Sharing = r.Sharing.With("topology="+[]string{"replicated", "sharded"}[copies%2], balanced(!off))
						m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Copied(copies)
						all := m.Start(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
						traintest.Alike(t, fmt.Sprintf("%s on %d nodes by %s with %d copies, balance off %v", model, nodes, how, copies, off), m, all, want, 1e-10)
						for _, tr := range all {
							if !tr.Run.Session.Alone() && how != "centric" {
								away[off] += awayOf(tr.Run, tr.Run.Batches.Slots[0])
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

// Whoever dies meanwhile, and whoever holds what afterwards.
func TestBalanceOutlivesItsNodes(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	random := rand.New(rand.NewPCG(5, 6))
	r := traintest.Small("sage")
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	for _, way := range []string{"leap", "migrate"} {
		r.Sharing = traintest.Ways()[way]
		r.Sharing.Deterministic = true
		folders := make([]string, 5)
		for i := range folders {
			folders[i] = t.TempDir()
		}
		reports := map[int]trained.Epoch{}
		for runs := 0; ; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 5}[runs%3]
			r.Sharing = r.Sharing.With(balanced(runs%3 != 2))
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Copied(1 + random.IntN(3))
			ctx := traintest.CancelAfter(t, m, int64(nodes*(nodes-1))*(5+random.Int64N(13)))
			_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%5]
			})
			if err != nil && !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(err)
			}
			for _, of := range epochs {
				for _, e := range of {
					reports[e.Epoch] = e
				}
			}
			if err == nil {
				if runs < 3 {
					t.Errorf("%s was interrupted %d times only", way, runs)
				}
				break
			}
		}
		var all []trained.Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, reports[n])
		}
		if traintest.Learnt(all) != traintest.Learnt(one) {
			t.Errorf("%s:\n%s\nand undisturbed\n%s", way, traintest.Learnt(all), traintest.Learnt(one))
		}
	}
}

// Models that update themselves meet the roots of their slices, wherever those are
// computed, and are found where they were last.
func TestLocalUpdatesWithBalance(t *testing.T) {
	shards := traintest.Tiny(t, 150, 6)
	away := 0
	for nodes := 2; nodes <= 3; nodes++ {
		for slots := 1; slots <= nodes; slots++ {
			r := traintest.ExactRecipe("sage")
			r.EvalEvery, r.Epochs = 1<<20, 1<<20
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Copied(1)
			want := simulate(t, r, shards, m.Owners, nodes, slots, 3)
			r.Sharing = traintest.Updating(fmt.Sprint(slots), 3)
			all := m.Start(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
			d, err := leap.Deal(all[0].Run.Session.Layout, r.Sharing)
			if err != nil {
				t.Fatal(err)
			}
			at := map[uint32]int{}
			want.deal = func(batch []uint32) {
				for node := range nodes {
					for _, g := range d.Deal(nil, batch, node) {
						for _, v := range g.Roots {
							at[v] = node
							if all[0].Run.Session.Layout.Owner(v) != node {
								away++
							}
						}
					}
				}
			}
			want.of = func(v uint32) int { return at[v] }
			for epoch := 1; epoch < 3; epoch++ {
				want.Epoch(epoch, r.Rate)
				if err := m.Together(t, func(ctx context.Context, node int) error { return all[node].Run.Epoch(ctx) }); err != nil {
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
	shards := skewed(traintest.Communities(t, 3000), 1)
	r := traintest.Small("sage")
	r.Batch = 120
	for _, nodes := range []int{2, 3, 5} {
		for _, mode := range []string{"stay", "migrate"} {
			most := map[bool]float64{}
			for _, off := range []bool{false, true} {
				r.Sharing = strategy.Given("leap", "leap.mode="+mode, balanced(!off))
				m := traintest.NewMesh(nodes, []int{0, 1, 0, 1, 0}).Copied(nodes)
				all := m.Start(t, r, shards, train.Options{Threads: 1})
				for step := range 3 {
					edges := make([]float64, nodes)
					err := m.Each(func(node int) error {
						_, err := traintest.StepOnce(t.Context(), all[node], 1, step)
						edges[node] = float64(all[node].Run.Batches.Slots[0].Edges())
						if remote := all[node].Run.Batches.Slots[0].Remote; err == nil && remote > 0 {
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
	shards := traintest.Communities(t, 1500)
	whole := &replica.Replica{Shards: shards, Summaries: make([]*sample.Summary, len(shards))}
	r := traintest.Small("sage")
	for _, fanouts := range [][]int{{5, 3}, nil} {
		r.Fanouts = fanouts
		asked := fanouts
		if fanouts == nil {
			asked = []int{0, 0}
		}
		want := whole.Costs(asked)
		for _, topology := range []string{"replicated", "sharded"} {
			r.Sharing = strategy.Given("leap", "topology="+topology)
			for node, tr := range traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Copied(1).Start(t, r, shards, train.Options{Threads: 1}) {
				if got := tr.Run.Session.Layout.Costs; !slices.Equal(got, want) || slices.Min(got) == slices.Max(got) && fanouts == nil {
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
		for i, cost := range two.Costs(c.fanouts) {
			if int(cost/256) != c.want[i] {
				t.Errorf("fan-outs %v: a root of shard %d costs %g, want %d", c.fanouts, i, float64(cost)/256, c.want[i])
			}
		}
	}
}

// With other nodes, though as many, slots are looked for anew; with the same, in another
// order, the search goes on.
func TestSlotsAreLookedForAnewWithOtherNodes(t *testing.T) {
	r := traintest.Small("gcn")
	r.Sharing = traintest.Ways()["tuned"]
	found := deal.Tuning{Nodes: 3, Members: session.Members([]string{"n0", "n1", "n2"}), Slots: 2, Best: 1.5, Epochs: 3, Frozen: true}
	for name, c := range map[string]struct {
		names []string
		want  int
	}{
		"the same":        {[]string{"n0", "n1", "n2"}, 2},
		"another order":   {[]string{"n2", "n0", "n1"}, 2},
		"another of them": {[]string{"n0", "n1", "n3"}, 3},
	} {
		folders := traintest.Left(t, traintest.NewMesh(3, traintest.Uneven(5, 3)), r, func(_ int, tr *train.Learner) { tr.At.Tuning = found })
		m := traintest.NewMesh(3, traintest.Uneven(5, 3))
		m.Names = c.names
		for node, tr := range traintest.Again(t, m, r, folders) {
			if got := tr.Run.Sharing.Dealer.Tuning(); got.Slots != c.want || got.Frozen != (c.want == 2) || got.Members != session.Members(c.names) {
				t.Errorf("%s: node %d goes on with %+v", name, node, got)
			}
		}
	}
}

// balanced returns leap.balance.
func balanced(on bool) string {
	if on {
		return "leap.balance=on"
	}
	return "leap.balance=off"
}
