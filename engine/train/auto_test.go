package train

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

// slowRows has rows of features take their time on the way, and what the network is
// measured by none.
func slowRows(m *mesh, perRow time.Duration) {
	m.net.Trouble = func(ctx context.Context, _, _ int, q strategy.Query) error {
		if q.Service != strategy.Rows || perRow == 0 {
			return nil
		}
		select {
		case <-time.After(perRow * time.Duration(len(q.Body)/4)):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// seemsSlow has what the network is measured by take its time, and nothing else.
func seemsSlow(m *mesh) {
	m.net.Trouble = func(_ context.Context, _, _ int, q strategy.Query) error {
		if q.Kind == strategy.Control && q.Limit == 1<<20 {
			time.Sleep(10 * time.Second)
		}
		return nil
	}
}

// lopsided are owners of so many shards, nearly all of them the first node's: by leap,
// that would compute nearly all.
func lopsided(shards, nodes int) []int {
	owners := make([]int, shards)
	for i := 1; i < nodes; i++ {
		owners[shards-i] = i
	}
	return owners
}

// automatic is a recipe that leaves the strategy to the nodes. Weights are of the same
// bits, however they share it.
func automatic() Recipe {
	r := small("sage")
	r.Sharing = strategy.Settings{Strategy: strategy.Auto, Deterministic: true}
	r.Epochs, r.EvalEvery = 8, 4
	return r
}

// What the nodes choose, and what they change to while they train, is the same on all,
// and told; what is learnt is what one node learns.
func TestNodesChooseHowTheyShare(t *testing.T) {
	shards := communities(t, 1500)
	r := automatic()
	_, one := mustRun(t, r, shards, Options{Threads: 1})
	for name, c := range map[string]struct {
		perRow      time.Duration
		first, last string
		why         string
	}{
		"rows come at once":                  {0, strategy.Centric, strategy.Centric, "centric: about "},
		"rows come slower than was measured": {time.Millisecond, strategy.Centric, strategy.Leap, "leap since epoch "},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMesh(3, lopsided(len(shards), 3))
			slowRows(m, c.perRow)
			_, told := m.mustRun(t, r, shards, Options{Threads: 1})
			for node, all := range told {
				if learnt(all) != learnt(one) {
					t.Errorf("%s: node %d learns\n%s\nand one node\n%s", name, node, learnt(all), learnt(one))
				}
				for i, e := range all {
					if e.Strategy != told[0][i].Strategy || e.Why != told[0][i].Why {
						t.Errorf("%s: node %d tells of %s (%s) in epoch %d", name, node, e.Strategy, e.Why, e.Epoch)
					}
				}
			}
			first, last := told[0][0], told[0][len(told[0])-1]
			if first.Strategy != c.first || last.Strategy != c.last || !strings.HasPrefix(last.Why, c.why) {
				t.Errorf("%s: %s (%s) and then %s (%s)", name, first.Strategy, first.Why, last.Strategy, last.Why)
			}
		})
	}
}

// Where a node lacks the memory for what would be faster, or nodes of one machine have too
// little together, all stay with what they have.
func TestNobodyChangesWithoutRoom(t *testing.T) {
	shards := communities(t, 1500)
	r := automatic()
	_, one := mustRun(t, r, shards, Options{Threads: 1})
	const free = 100 << 20 // for one node, and not for two
	for name, c := range map[string]struct {
		spoil func(all []*learner)
		last  string
	}{
		"a node's bound": {func(all []*learner) { all[1].options.Memory = 1 }, strategy.Centric},
		"one machine": {func(all []*learner) {
			for node, tr := range all {
				tr.options.memory = func() memory { return memory{Machine: 7, Process: uint64(node + 1), Free: free} }
			}
		}, strategy.Centric},
		"three machines": {func(all []*learner) {
			for node, tr := range all {
				tr.options.memory = func() memory { return memory{Machine: uint64(node + 1), Process: 1, Free: free} }
			}
		}, strategy.Leap},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMesh(3, lopsided(len(shards), 3))
			slowRows(m, time.Millisecond)
			all := m.start(t, r, shards, Options{Threads: 1})
			c.spoil(all)
			if err := m.each(func(node int) error { return all[node].train(t.Context()) }); err != nil {
				t.Fatal(err)
			}
			for node, tr := range all {
				if learnt(tr.history) != learnt(one) || tr.history[7].Strategy != c.last {
					t.Errorf("%s: node %d trains by %s and learns\n%s\nand one node\n%s", name, node, tr.history[7].Strategy, learnt(tr.history), learnt(one))
				}
			}
		})
	}
}

// Where sums of the first layer are less than rows, and the network is slow, p3 trains.
func TestNodesChooseP3(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Sharing.Strategy, r.Model.Hidden = strategy.Auto, 2
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(3, uneven(len(shards), 3))
		seemsSlow(m)
		all := []strategy.Strategy{centric.Strategy{}, p3.Strategy{}}
		_, told := m.mustRun(t, r, shards, Options{Threads: 1, Strategies: all})
		for node := range told {
			for _, e := range told[node] {
				if e.Strategy != strategy.P3 || !strings.HasPrefix(e.Why, "p3: about ") || e.Sent.Bytes[strategy.Feature] > 0 || e.Sent.Bytes[strategy.Activation] == 0 {
					t.Errorf("node %d in epoch %d: %s (%s), %v", node, e.Epoch, e.Strategy, e.Why, e.Sent.Bytes)
				}
			}
		}
	})
}

// A batch that all epochs have is there as the strategy in use deals it, also after
// another was tried.
func TestABatchOfAllEpochsIsDealtAgain(t *testing.T) {
	shards := communities(t, 1500)
	r := automatic()
	r.Batch, r.Fanouts = 0, nil
	synctest.Test(t, func(t *testing.T) {
		all := newMesh(3, lopsided(len(shards), 3)).start(t, r, shards, Options{Threads: 1})
		for node, tr := range all {
			roots := func() (all [][]uint32) {
				for i := range tr.batches.slots[0].groups {
					all = append(all, slices.Clone(tr.batches.slots[0].groups[i].Roots))
				}
				return all
			}
			before := roots()
			d, err := leap.Strategy{}.New(tr.shared.layout, r.Sharing)
			if err != nil {
				t.Fatal(err)
			}
			if tr.shared.strategy != strategy.Centric || !tr.batches.same {
				t.Fatalf("the job is shared by %s, in %d steps", tr.shared.strategy, tr.batches.steps)
			}
			if _, err := tr.try(t.Context(), auto.Candidate{Name: strategy.Leap, Dealer: d}, 2); err != nil {
				t.Fatal(err)
			}
			if node == 0 && reflect.DeepEqual(roots(), before) {
				t.Error("leap deals as centric does: nothing is shown")
			}
			if err := tr.back(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			if got := roots(); !reflect.DeepEqual(got, before) || tr.shared.strategy != strategy.Centric {
				t.Errorf("node %d has other roots by %s", node, tr.shared.strategy)
			}
		}
	})
}

// A device that is full of what the run itself holds goes on holding it when another
// strategy is tried, and has room for that one in its place; beyond that it must have more.
func TestADeviceKeepsWhatItHolds(t *testing.T) {
	shards := communities(t, 1500)
	m := newMesh(2, uneven(len(shards), 2))
	all := m.start(t, automatic(), shards, abroad(Options{Threads: 1}, nil))
	for epoch, c := range []struct {
		more uint64 // than the steps that were seen take
		fits bool
	}{{0, true}, {64 << 20, false}} {
		err := m.each(func(node int) error {
			tr := all[node]
			device := tr.foreign.(*foreign.Device)
			free, total := device.Free()
			device.Limit(total - free)
			d, err := leap.Strategy{}.New(tr.shared.layout, tr.recipe.Sharing)
			if err != nil {
				return err
			}
			need, err := tr.try(t.Context(), auto.Candidate{Name: strategy.Leap, Dealer: d}, 2)
			if err != nil {
				return err
			}
			held := &tr.ferry.holds
			if need.holds.features != held.features || need.holds.edges.Graph != held.edges.Graph || held.features == 0 || held.edges.Graph == 0 || len(need.holds.notes) > 0 {
				t.Errorf("node %d holds %+v, and would hold %+v", node, held, need.holds)
			}
			need.pass += c.more
			fits, err := tr.roomFor(t.Context(), &need, 1+epoch)
			if fits != c.fits {
				t.Errorf("node %d has room for %d bytes more: %v", node, c.more, fits)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a dealer has found out before, it knows when it is chosen again.
func TestAChosenDealerGoesOn(t *testing.T) {
	shards := communities(t, 1500)
	r := automatic()
	r.Sharing.Deterministic, r.Sharing.Leap.Mode = false, "migrate"
	m := newMesh(3, uneven(len(shards), 3))
	found := strategy.Tuning{Nodes: 3, Members: members(m.names), Slots: 2, Epochs: 7, Frozen: true}
	err := m.each(func(node int) error {
		held, o := m.of(node, shards, Options{Threads: 1, Strategies: []strategy.Strategy{leap.Strategy{}}})
		tr, err := newTrainer(t.Context(), r, held, o)
		if err != nil {
			return err
		}
		defer tr.close()
		tr.learners[0].at.Tuning = found
		if err := tr.prepare(t.Context()); err != nil {
			return err
		}
		if got := tr.shared.dealer.Tuning(); got != found {
			return fmt.Errorf("node %d goes on with %+v", node, got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Rows that centric is to keep are kept where it is chosen, and p3's columns must have
// room.
func TestWhatAChoiceNeeds(t *testing.T) {
	shards := communities(t, 1500)
	for _, want := range []string{strategy.Centric, strategy.Leap} {
		synctest.Test(t, func(t *testing.T) {
			r := automatic()
			r.Sharing.Centric.Cache = 10
			m := newMesh(3, []int{0, 0, 1, 1, 2})
			if want == strategy.Leap {
				seemsSlow(m)
			}
			for node, tr := range m.start(t, r, shards, Options{Threads: 1}) {
				if got := tr.shared.strategy; got != want || (tr.shared.cached > 0) != (want == strategy.Centric) {
					t.Errorf("node %d keeps %d bytes of rows for %s", node, tr.shared.cached, got)
				}
				columns := uint64(4 * 1500 * 20 / 3)
				for memory, fits := range map[uint64]bool{0: true, 2 * columns: true, 2*columns - 1: false} {
					if tr.options.Memory = memory; tr.columnsFit() != fits {
						t.Errorf("columns of %d bytes: fit in %d is not %v", columns, memory, fits)
					}
				}
			}
		})
	}
}
