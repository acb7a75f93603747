package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// The weights after each epoch are the same bits on any number of nodes, by any strategy.
func TestDeterministicRunsAreTheSameOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := traintest.Communities(t, 1500), traintest.CoraShards(t)
	for _, full := range []bool{false, true} {
		for name, shards := range map[string][]*graph.Shard{"dense": dense, "sparse": sparse} {
			r := traintest.Small("sage")
			r.Epochs = 2
			r.Sharing.Deterministic = true
			if full {
				r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
			}
			_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
			want := traintest.Learnt(one)
			r.Sharing.Deterministic = false
			if _, other := traintest.MustRun(t, r, shards, train.Options{Threads: 2}); traintest.Learnt(other) == want {
				t.Error("the order of sums makes no difference here: nothing is shown")
			}
			for _, nodes := range []int{1, 2, 5} {
				for way, sharing := range traintest.Ways() {
					r.Sharing = sharing
					r.Sharing.Deterministic = true
					_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, train.Options{Threads: map[int]int{1: 2, 2: 8, 5: 1}[nodes]})
					for node, got := range reports {
						if traintest.Learnt(got) != want {
							t.Errorf("%s, full %v, node %d of %d by %s:\n%s\nand one node\n%s", name, full, node, nodes, way, traintest.Learnt(got), want)
						}
					}
				}
			}
		}
	}
}

// All nodes tell the same of an epoch, to the last digit of its times.
func TestAllNodesTellTheSame(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for way, sharing := range traintest.Ways() {
		r := traintest.Small("gcn")
		r.Sharing, r.EvalEvery = sharing, 2
		results, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
		for node := range reports {
			for i, e := range reports[node] {
				of, first := e, reports[0][i]
				of.Eval, first.Eval, of.Scores, first.Scores = nil, nil, nil, nil
				if fmt.Sprintf("%+v", of) != fmt.Sprintf("%+v", first) || fmt.Sprint(e.Scores) == "" {
					t.Errorf("%s: node %d tells %+v and node 0 %+v", way, node, of, first)
				}
			}
			if lasting(results[node].Best) != lasting(results[0].Best) || results[node].Early != results[0].Early {
				t.Errorf("%s: node %d has %+v", way, node, results[node])
			}
		}
		e := reports[0][3]
		if slots := map[string]int{"centric": 1, "leap": 1, "migrate": 2, "tuned": e.Slots}[way]; e.Strategy != sharing.Strategy || e.Slots != slots || reports[0][0].Slots == 0 {
			t.Errorf("%s: the epoch is of %s in %d slots", way, e.Strategy, e.Slots)
		}
		if p := e.Phases; p.Reduce <= 0 || p.Compute <= 0 || p.Compute+p.Wait+p.Reduce > e.Seconds || reports[0][0].Rows.Remote == 0 || e.Rows.Local == 0 {
			t.Errorf("%s: %+v", way, e)
		}
		if e.Sent.Bytes[peer.Gradient] == 0 || reports[0][0].Sent.Bytes[peer.Feature] == 0 || (e.Sent.Bytes[peer.Model] > 0) != (e.Slots > 1) ||
			(e.Sent.Bytes[peer.Topology] > 0) != (sharing.Topology() == "sharded") {
			t.Errorf("%s: sent is %+v", way, e.Sent)
		}
		if way == "migrate" { // each node takes a model over once a step
			const framing, weights = peer.QueryFraming + peer.AnswerFraming, 20*12 + 12 + 12*4 + 4
			hops := uint64(3 * e.Steps)
			if e.Sent.Requests[peer.Model] != hops || e.Sent.Bytes[peer.Model] != hops*(framing+batched.HeadSize+4*weights) {
				t.Errorf("%d hops of models take %d bytes", e.Sent.Requests[peer.Model], e.Sent.Bytes[peer.Model])
			}
		}
	}
}

// Who does not say how is told what was chosen, and why.
func TestTheStrategyIsChosen(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, name := range []string{"", strategy.Auto} {
		r := traintest.Short("gcn")
		r.Sharing.Strategy = name
		_, reports := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1})
		if e := reports[1][0]; e.Strategy != "leap" || e.Why == "" {
			t.Errorf("%q: %+v", name, e)
		}
	}
}

// What an epoch is said to have sent is what was carried, message by message.
func TestWhatIsSentIsCountedInItsEpoch(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Sharing = traintest.Ways()["migrate"]
	r.EvalEvery = 1 << 20
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	var carried [8]atomic.Uint64
	var begun atomic.Bool
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		switch {
		case q.Epoch > 0 && q.Epoch < 3:
			carried[q.Epoch].Add(1)
		case q.Service == peer.Rows && begun.Load():
			carried[2].Add(1) // the rest of the rows that are kept comes before the second epoch
		}
		return nil
	}
	r.Epochs = 3
	all := m.Start(t, r, shards, train.Options{Threads: 2})
	// What was brought before the first step is told of with it.
	before, looked := uint64(0), carried[1].Load()
	for _, tr := range all {
		for _, n := range tr.Run.Session.Start.Read().Requests {
			before += n
		}
	}
	reports := make([][]trained.Epoch, len(all))
	begun.Store(true)
	err := m.Each(func(node int) error {
		for range 2 {
			if err := all[node].Run.Epoch(t.Context()); err != nil {
				return err
			}
		}
		reports[node] = all[node].History
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range reports[0] {
		got := uint64(0)
		for _, n := range e.Sent.Requests {
			got += n
		}
		want := carried[i+1].Load()
		if i == 0 {
			want += before - looked
		}
		if got != want {
			t.Errorf("epoch %d is said to have asked %d questions, and %d were carried", e.Epoch, got, want)
		}
	}
}

// Rows are those that the blocks read, and owners are asked once a step at most.
func TestRowsAndRequestsOfAStep(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	const nodes = 4
	for way, sharing := range traintest.Ways() {
		r := traintest.Small("sage")
		r.Sharing = sharing
		m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		err := m.Each(func(node int) error {
			tr := all[node]
			tr.Run.Batches.Shuffle(1)
			s := tr.Run.Batches.Slots[0]
			tr.Run.Batches.Set(s, 2)
			if err := tr.Run.Method.Prepare(t.Context(), tr.Run.Batches.Workers[0], s, 1); err != nil {
				return err
			}
			near, far := map[uint32]bool{}, map[uint32]bool{}
			for i := range s.Groups {
				for _, v := range s.Groups[i].Outermost() {
					if tr.Run.Session.Layout.Owner(v) == node {
						near[v] = true
					} else {
						far[v] = true
					}
				}
			}
			if s.Remote != len(far) || s.Gathered != len(near)+len(far) {
				return fmt.Errorf("%d rows are gathered, %d of them elsewhere, of %d and %d", s.Gathered, s.Remote, len(near)+len(far), len(far))
			}
			if n := s.Tally.Read().Requests[peer.Feature]; n > nodes-1 {
				return fmt.Errorf("%d questions for rows", n)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
}

func allocateLittle(t *testing.T, way string, r recipe.Recipe, shards []*graph.Shard) {
	t.Helper()
	var asked atomic.Int64
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	m.Net.Trouble = func(context.Context, int, int, peer.Query) error {
		asked.Add(1)
		return nil
	}
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	epoch := func() (allocated uint64) {
		var before, after runtime.MemStats
		asked.Store(0)
		runtime.ReadMemStats(&before)
		err := m.Each(func(node int) error {
			for _, l := range all[node].Run.Learners {
				l.At.Epoch, l.At.Step = l.At.Epoch+1, 0
			}
			return all[node].Run.Steps(t.Context())
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	for range 5 {
		epoch()
	}
	least := epoch()
	for range 5 {
		least = min(least, epoch())
	}
	// loopback copies each question; the rest is goroutines that ask.
	if most := uint64(12*asked.Load()) + uint64(20*all[0].Run.Batches.Steps); least > most || asked.Load() == 0 {
		t.Errorf("%s: an epoch of %d steps with %d questions allocates %d times", way, all[0].Run.Batches.Steps, asked.Load(), least)
	}
}

// Three nodes learn what one does, though not to the last digit.
func TestCoraIsLearntByThreeNodes(t *testing.T) {
	shards := traintest.CoraShards(t)
	r := traintest.CoraRecipe("gcn")
	r.Epochs = 100
	one, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	r.Sharing.Strategy = "leap"
	three, _ := traintest.NewMesh(3, []int{0, 1, 2, 1}).MustRun(t, r, shards, train.Options{Threads: 1})
	want, got := one.Best.Scores.Test.Accuracy, three[0].Best.Scores.Test.Accuracy
	if got < want-0.01 || got > want+0.01 {
		t.Errorf("three nodes reach %g and one %g", got, want)
	}
}

// One seat's folder has a damaged checkpoint: another node's is taken.
func TestADamagedCheckpointIsReplacedByAnothers(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Short("gcn")
	r.Sharing = traintest.Ways()["leap"]
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	folder := func(node int) string { return folders[node] }
	o := train.Options{Strategies: strategies.All, Threads: 1, Resume: true, Dataset: "d"}
	run := func() error {
		_, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, o, folder)
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(folders[0], train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	damage := func(nodes ...int) {
		for _, node := range nodes {
			if err := os.WriteFile(filepath.Join(folders[node], train.CheckpointFile), whole[:len(whole)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	damage(0, 2)
	r.Epochs = 2
	if err := run(); err != nil {
		t.Fatal(err)
	}
	damage(0, 1, 2)
	if err := run(); err == nil || !strings.Contains(err.Error(), "node n0 has a checkpoint of this job that is not usable") {
		t.Error(err)
	}
}

// A batch that is that of every epoch is dealt anew when there are to be other slots.
func TestSlotsOfAFullBatchFollowTheirTuning(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts, r.Epochs, r.Sharing = 0, nil, 8, traintest.Ways()["tuned"]
	_, reports := traintest.NewMesh(3, []int{0, 1, 2, 0, 1}).MustRun(t, r, shards, train.Options{Threads: 1})
	// The first four epochs have all slots, the fifth one less, since those after the first
	// were the fastest that count.
	for i, want := range []int{3, 3, 3, 3, 2} {
		if got := reports[0][i].Slots; got != want {
			t.Errorf("epoch %d had %d slots, not %d", i+1, got, want)
		}
	}
}
