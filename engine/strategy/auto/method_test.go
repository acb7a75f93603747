package auto_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// slowRows has rows of features take their time on the way, and what the network is
// measured by none.
func slowRows(m *traintest.Mesh, perRow time.Duration) {
	m.Net.Trouble = func(ctx context.Context, _, _ int, q peer.Query) error {
		if q.Service != peer.Rows || perRow == 0 {
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
func seemsSlow(m *traintest.Mesh) {
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Kind == peer.Control && q.Limit == 1<<20 {
			<-time.After(10 * time.Second)
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

// automatic is a recipe that leaves the strategy to the nodes. Rows come in every epoch.
func automatic() recipe.Recipe {
	r := traintest.Small("sage")
	r.Sharing = strategy.Settings{Strategy: strategy.Auto}.With("leap.cache=off", "centric.cache=off")
	r.Epochs, r.EvalEvery, r.Batch = 8, 4, 95
	return r
}

// alike returns an error unless all nodes learn the same, about what one node learns.
func alike(reports [][]trained.Epoch, one []trained.Epoch) error {
	for node, all := range reports {
		if traintest.Learnt(all) != traintest.Learnt(reports[0]) {
			return fmt.Errorf("node %d learns\n%s\nand node 0\n%s", node, traintest.Learnt(all), traintest.Learnt(reports[0]))
		}
		for i, e := range all {
			if math.Abs(e.Loss-one[i].Loss) > 1e-3*one[i].Loss {
				return fmt.Errorf("node %d has a loss of %v in epoch %d, and one node %v", node, e.Loss, e.Epoch, one[i].Loss)
			}
			if e.Strategy != reports[0][i].Strategy || e.Why != reports[0][i].Why {
				return fmt.Errorf("node %d reports %s (%s) in epoch %d", node, e.Strategy, e.Why, e.Epoch)
			}
		}
	}
	return nil
}

// What the nodes try and choose is the same on all, and recorded; what is learnt is what one node
// learns.
func TestNodesChooseHowTheyShare(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	for name, c := range map[string]struct {
		perRow      time.Duration
		first, last string
		why         string
	}{
		"rows come at once":                  {0, "centric", "centric", "centric: no strategy could be tried"},
		"rows come slower than was measured": {time.Millisecond, "centric", "leap", "leap: a step took "},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, lopsided(len(shards), 3))
			slowRows(m, c.perRow)
			_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1})
			if err := alike(reports, one); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			first, tried, then := reports[0][0], reports[0][1], reports[0][2] // a trial takes two epochs
			if first.Strategy != c.first || tried.Why != first.Why || then.Strategy != c.last || !strings.HasPrefix(then.Why, c.why) ||
				first.Why != "centric and leap are tried for 8 steps each to see what is fastest: by formula it is centric" {
				t.Errorf("%s: %s (%s) and then %s (%s)", name, first.Strategy, first.Why, then.Strategy, then.Why)
			}
		})
	}
}

// Where all epochs have the same batch, it is dealt anew for each turn.
func TestTurnsOfOneBatch(t *testing.T) {
	shards := traintest.Communities(t, 600)
	r := automatic()
	r.Batch, r.Fanouts, r.Epochs, r.EvalEvery = 0, nil, 66, 66
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	synctest.Test(t, func(t *testing.T) {
		m := traintest.NewMesh(3, lopsided(len(shards), 3))
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Service == peer.Offers && q.Limit != 1<<20 {
				<-time.After(time.Millisecond)
			}
			return nil
		}
		_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1})
		if err := alike(reports, one); err != nil {
			t.Error(err)
		}
		by := strategiesOf(reports[0])
		first, second := by[0], by[8]
		want := slices.Concat(slices.Repeat([]string{first}, 8), slices.Repeat([]string{second}, 8), slices.Repeat([]string{first}, 50))
		if first == second || !slices.Equal(by, want) { // both take as long
			t.Errorf("the nodes train by %v", by)
		}
		rows := func(i int) uint64 { return reports[0][i].Rows.Remote } // that came to fill it
		if rows(0) == 0 || rows(1) > 0 || rows(8) == 0 || rows(8) == rows(0) || rows(9) > 0 || rows(16) != rows(0) || rows(17) > 0 {
			t.Errorf("%d rows come at first, then %d and at last %d", rows(0), rows(8), rows(16))
		}
	})
}

// Where weights must be the same bits, however nodes share the job, they are those of one node, and
// the formula decides whatever steps take.
func TestNothingIsTriedWhereBitsCount(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	why := ""
	for _, slow := range []func(*traintest.Mesh){func(m *traintest.Mesh) { slowRows(m, time.Millisecond) }, seemsSlow} {
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, lopsided(len(shards), 3))
			slow(m)
			_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1})
			why = cmp.Or(why, reports[0][0].Why)
			for node, all := range reports {
				if traintest.Learnt(all) != traintest.Learnt(one) {
					t.Errorf("node %d learns\n%s\nand one node\n%s", node, traintest.Learnt(all), traintest.Learnt(one))
				}
				for _, e := range all {
					if !strings.HasPrefix(e.Why, e.Strategy+": about ") || e.Why != why {
						t.Errorf("node %d trains epoch %d by %s: %s", node, e.Epoch, e.Strategy, e.Why)
					}
				}
			}
		})
	}
}

// Where a node lacks the memory for a strategy, or nodes of one machine have too little together,
// it is not tried.
func TestNothingIsTriedWithoutRoom(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	const free = 100 << 20 // for one node, and not for two
	for name, c := range map[string]struct {
		spoil func(all []*train.Learner)
		last  string
	}{
		"a node's bound": {func(all []*train.Learner) { all[1].Run.Options.Memory = 1 }, "centric"},
		"one machine": {func(all []*train.Learner) {
			for node, tr := range all {
				tr.Run.Options.Measure = func() budget.Memory { return budget.Memory{Machine: 7, Process: uint64(node + 1), Free: free} }
			}
		}, "centric"},
		"three machines": {func(all []*train.Learner) {
			for node, tr := range all {
				tr.Run.Options.Measure = func() budget.Memory { return budget.Memory{Machine: uint64(node + 1), Process: 1, Free: free} }
			}
		}, "leap"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, lopsided(len(shards), 3))
			slowRows(m, time.Millisecond)
			all := m.Start(t, r, shards, train.Options{Threads: 1})
			c.spoil(all)
			if err := m.Each(func(node int) error { return all[node].Run.Train(t.Context()) }); err != nil {
				t.Fatal(err)
			}
			var reports [][]trained.Epoch
			for _, tr := range all {
				reports = append(reports, tr.History)
			}
			if err := alike(reports, one); err != nil || all[0].History[7].Strategy != c.last {
				t.Errorf("%s: by %s: %v", name, all[0].History[7].Strategy, err)
			}
		})
	}
}

// Where all rows stay once they have come, their number is no reason for p3.
func TestRowsThatStayAreNoReasonForP3(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Sharing.Strategy, r.Model.Hidden = strategy.Auto, 2
	synctest.Test(t, func(t *testing.T) {
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		seemsSlow(m)
		all := train.Strategies{auto.Strategy, batched.Single, centric.Strategy, p3.Strategy}
		_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: all})
		for node := range reports {
			for n, e := range reports[node] {
				if e.Strategy != "centric" || n > 1 && e.Sent.Bytes[peer.Feature] >= reports[node][0].Sent.Bytes[peer.Feature]/4 {
					t.Errorf("node %d in epoch %d: %s (%s), %v", node, e.Epoch, e.Strategy, e.Why, e.Sent.Bytes)
				}
			}
		}
	})
}

// Where sums of the first layer are less than rows, and the network is slow, p3 trains.
func TestNodesChooseP3(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Sharing.Strategy, r.Model.Hidden = strategy.Auto, 2
	r.Sharing = r.Sharing.With("centric.cache=off")
	synctest.Test(t, func(t *testing.T) {
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		seemsSlow(m)
		all := train.Strategies{auto.Strategy, batched.Single, centric.Strategy, p3.Strategy}
		_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: all})
		for node := range reports {
			for _, e := range reports[node] {
				if e.Strategy != "p3" || !strings.HasPrefix(e.Why, "p3: about ") || e.Sent.Bytes[peer.Feature] > 0 || e.Sent.Bytes[peer.Activation] == 0 {
					t.Errorf("node %d in epoch %d: %s (%s), %v", node, e.Epoch, e.Strategy, e.Why, e.Sent.Bytes)
				}
			}
		}
	})
}

// A batch that all epochs have is there as the strategy in use deals it, also after
// another was tried.
func TestABatchOfAllEpochsIsDealtAgain(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Batch, r.Fanouts = 0, nil
	synctest.Test(t, func(t *testing.T) {
		all := traintest.NewMesh(3, lopsided(len(shards), 3)).Start(t, r, shards, train.Options{Threads: 1})
		for node, tr := range all {
			roots := func() (all [][]uint32) {
				for i := range tr.Run.Batches.Slots[0].Groups {
					all = append(all, slices.Clone(tr.Run.Batches.Slots[0].Groups[i].Roots))
				}
				return all
			}
			before := roots()
			d, err := leap.Deal(tr.Run.Session.Layout, r.Sharing)
			if err != nil {
				t.Fatal(err)
			}
			if tr.Run.Sharing.Strategy != "centric" || !tr.Run.Batches.Same {
				t.Fatalf("the job is shared by %s, in %d steps", tr.Run.Sharing.Strategy, tr.Run.Batches.Steps)
			}
			if _, err := auto.Try(t.Context(), tr.Run, auto.Candidate{Name: "leap", Dealer: d}, 2); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(roots(), before) {
				t.Errorf("node %d: trying a strategy changes the batch in use", node)
			}
			tr.Run.Sharing.Chooser.(*auto.Chooser).Back()
			if got := roots(); !reflect.DeepEqual(got, before) || tr.Run.Sharing.Strategy != "centric" {
				t.Errorf("node %d has other roots by %s", node, tr.Run.Sharing.Strategy)
			}
		}
	})
}

// A device that is full of what the run itself holds goes on holding it when another
// strategy is tried, and has room for that one in its place; beyond that it must have more.
func TestADeviceKeepsWhatItHolds(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
	all := m.Start(t, automatic(), shards, traintest.Abroad(train.Options{Threads: 1}, nil))
	for epoch, c := range []struct {
		more uint64 // than the steps that were seen take
		fits bool
	}{{0, true}, {64 << 20, false}} {
		err := m.Each(func(node int) error {
			tr := all[node]
			device := tr.Run.Foreign.(*foreign.Device)
			free, total := device.Free()
			device.Limit(total - free)
			d, err := leap.Deal(tr.Run.Session.Layout, tr.Recipe.Sharing)
			if err != nil {
				return err
			}
			need, err := auto.Try(t.Context(), tr.Run, auto.Candidate{Name: "leap", Dealer: d}, 2)
			if err != nil {
				return err
			}
			held := &tr.Run.Uploader.Holds
			if need.Holds.Features != held.Features || need.Holds.Edges.Graph != held.Edges.Graph || held.Features == 0 || held.Edges.Graph == 0 || len(need.Holds.Notes) > 0 {
				t.Errorf("node %d holds %+v, and would hold %+v", node, held, need.Holds)
			}
			need.Add(budget.Pass, c.more)
			at := exchange.Tag{Epoch: uint32(1 + epoch), Lane: exchange.LaneMessages, Index: 1 << 14}
			fits, err := auto.RoomFor(t.Context(), tr.Run, at, &need)
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
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Sharing = strategy.Settings{Strategy: strategy.Auto}.With("leap.mode=migrate")
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	found := deal.Tuning{Nodes: 3, Members: session.Members(m.Names), Slots: 2, Epochs: 7, Frozen: true}
	err := m.Each(func(node int) error {
		held, o := m.Of(node, shards, train.Options{Threads: 1, Strategies: train.Strategies{batched.Single, auto.Strategy, leap.Strategy}})
		tr, err := train.NewTrainer(t.Context(), r, held, o)
		if err != nil {
			return err
		}
		defer tr.Close()
		tr.Learners[0].At.Tuning = found
		if err := tr.Prepare(t.Context()); err != nil {
			return err
		}
		if got := tr.Sharing.Dealer.Tuning(); got != found {
			return fmt.Errorf("node %d goes on with %+v", node, got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// As many rows as centric is to keep are kept where it is chosen, and p3's columns must have
// room.
func TestWhatAChoiceNeeds(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, want := range []string{"centric", "leap"} {
		synctest.Test(t, func(t *testing.T) {
			r := automatic()
			r.Batch = 190
			r.Sharing = r.Sharing.With("centric.cache=10")
			m := traintest.NewMesh(3, lopsided(len(shards), 3))
			if want == "leap" {
				seemsSlow(m)
			}
			for node, tr := range m.Start(t, r, shards, train.Options{Threads: 1}) {
				rows := 0
				if kept := tr.Run.Session.Source.Kept(); kept != nil {
					rows = kept.Rows()
				}
				if got := tr.Run.Sharing.Strategy; got != want || (rows == 10) != (want == "centric") {
					t.Errorf("node %d keeps %d bytes of rows for %s", node, tr.Run.Sharing.Cached, got)
				}
				columns := uint64(4 * 1500 * 20 / 3)
				for memory, fits := range map[uint64]bool{0: true, 2 * columns: true, 2*columns - 1: false} {
					if tr.Run.Options.Memory = memory; auto.ColumnsFit(tr.Run) != fits {
						t.Errorf("columns of %d bytes: fit in %d is not %v", columns, memory, fits)
					}
				}
			}
		})
	}
}

// A program has strategies that compute something else than one node does, and auto
// considers none of them.
func TestOnlyExactStrategiesAreChosen(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for _, deterministic := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := automatic()
			r.Sharing.Deterministic, r.Epochs = deterministic, 1
			m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
			_, epochs := m.MustRun(t, r, shards, train.Options{Threads: 1, Strategies: strategies.All})
			why := epochs[0][0].Why
			for _, d := range strategies.All {
				if named := strings.Contains(why, d.Name+" "); !d.Exact && named || d.Exact && !named && (d.Name != "p3" || !deterministic) && !strings.Contains(why, d.Name+":") {
					t.Errorf("deterministic %v, %s: %q", deterministic, d.Name, why)
				}
			}
		})
	}
}
