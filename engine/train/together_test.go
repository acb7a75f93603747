package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// ways are some settings of each strategy.
func ways() map[string]strategy.Settings {
	return map[string]strategy.Settings{
		"centric": {Strategy: strategy.Centric, Topology: "sharded"},
		"leap":    {Strategy: strategy.Leap},
		"migrate": {Strategy: strategy.Leap, Topology: "sharded", Leap: strategy.LeapSettings{Mode: "migrate", Merge: "2"}},
		"tuned":   {Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: "migrate"}},
	}
}

// learnt is what must not differ between nodes, nor between numbers of them where they
// add up in the order of grains.
func learnt(all []Epoch) string {
	text := ""
	for _, e := range all {
		text += fmt.Sprintf("%d: %v %v %s", e.Epoch, e.Loss, e.Rate, e.Hash)
		if e.Eval != nil {
			text += fmt.Sprint(" ", e.Eval.Train, e.Eval.Val, e.Eval.Test)
		}
		text += "\n"
	}
	return text
}

// The weights after each epoch are the same bits on any number of nodes, by any strategy.
func TestDeterministicRunsAreTheSameOnAnyNumberOfNodes(t *testing.T) {
	dense, sparse := communities(t, 1500), coraShards(t)
	for _, full := range []bool{false, true} {
		for name, shards := range map[string][]*graph.Shard{"dense": dense, "sparse": sparse} {
			r := small("sage")
			r.Epochs = 2
			r.Sharing.Deterministic = true
			if full {
				r.Model.Model, r.Model.Aggregator, r.Batch, r.Fanouts = "gcn", "", 0, nil
			}
			_, one := mustRun(t, r, shards, Options{Threads: 2})
			want := learnt(one)
			r.Sharing.Deterministic = false
			if _, other := mustRun(t, r, shards, Options{Threads: 2}); learnt(other) == want {
				t.Error("the order of sums makes no difference here: nothing is shown")
			}
			for _, nodes := range []int{1, 2, 5} {
				for way, sharing := range ways() {
					r.Sharing = sharing
					r.Sharing.Deterministic = true
					_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, Options{Threads: map[int]int{1: 2, 2: 8, 5: 1}[nodes]})
					for node, got := range told {
						if learnt(got) != want {
							t.Errorf("%s, full %v, node %d of %d by %s:\n%s\nand one node\n%s", name, full, node, nodes, way, learnt(got), want)
						}
					}
				}
			}
		}
	}
}

// All nodes tell the same of an epoch, to the last digit of its times.
func TestAllNodesTellTheSame(t *testing.T) {
	shards := communities(t, 1500)
	for way, sharing := range ways() {
		r := small("gcn")
		r.Sharing, r.EvalEvery = sharing, 2
		results, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 1})
		for node := range told {
			for i, e := range told[node] {
				of, first := e, told[0][i]
				of.Eval, first.Eval = nil, nil
				if fmt.Sprintf("%+v", of) != fmt.Sprintf("%+v", first) || fmt.Sprint(e.Eval) == "" {
					t.Errorf("%s: node %d tells %+v and node 0 %+v", way, node, of, first)
				}
			}
			if plain(results[node].Best) != plain(results[0].Best) || results[node].Early != results[0].Early {
				t.Errorf("%s: node %d has %+v", way, node, results[node])
			}
		}
		e := told[0][3]
		if slots := map[string]int{"centric": 1, "leap": 1, "migrate": 2, "tuned": e.Slots}[way]; e.Strategy != sharing.Strategy || e.Slots != slots || told[0][0].Slots == 0 {
			t.Errorf("%s: the epoch is of %s in %d slots", way, e.Strategy, e.Slots)
		}
		if p := e.Phases; p.Reduce <= 0 || p.Compute <= 0 || p.Compute+p.Wait+p.Reduce > e.Seconds || e.Remote == 0 || e.Remote >= e.Rows {
			t.Errorf("%s: %+v", way, e)
		}
		if e.Sent.Bytes[strategy.Gradient] == 0 || e.Sent.Bytes[strategy.Feature] == 0 || (e.Sent.Bytes[strategy.Model] > 0) != (e.Slots > 1) ||
			(e.Sent.Bytes[strategy.Topology] > 0) != (sharing.Topology == "sharded") {
			t.Errorf("%s: sent is %+v", way, e.Sent)
		}
		if way == "migrate" { // each node takes a model over once a step
			const framing, weights = strategy.QueryFraming + strategy.AnswerFraming, 20*12 + 12 + 12*4 + 4
			hops := uint64(3 * e.Steps)
			if e.Sent.Requests[strategy.Model] != hops || e.Sent.Bytes[strategy.Model] != hops*(framing+headSize+4*weights) {
				t.Errorf("%d hops of models take %d bytes", e.Sent.Requests[strategy.Model], e.Sent.Bytes[strategy.Model])
			}
		}
	}
}

// Who does not say how is told what was chosen, and why.
func TestTheStrategyIsChosen(t *testing.T) {
	shards := communities(t, 1500)
	for _, name := range []string{"", strategy.Auto} {
		r := short("gcn")
		r.Sharing.Strategy = name
		_, told := newMesh(2, uneven(len(shards), 2)).mustRun(t, r, shards, Options{Threads: 1})
		if e := told[1][0]; e.Strategy != strategy.Leap || e.Why == "" {
			t.Errorf("%q: %+v", name, e)
		}
	}
}

// What an epoch is said to have sent is what was carried, message by message.
func TestWhatIsSentIsCountedInItsEpoch(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Sharing = ways()["migrate"]
	r.EvalEvery = 1 << 20
	m := newMesh(3, uneven(len(shards), 3))
	var carried [8]atomic.Uint64
	m.net.Trouble = func(_ context.Context, _, _ int, q strategy.Query) error {
		if q.Epoch > 0 && q.Epoch < 3 {
			carried[q.Epoch].Add(1)
		}
		return nil
	}
	r.Epochs = 3
	all := m.start(t, r, shards, Options{Threads: 2})
	// What was brought before the first step is told of with it.
	before, looked := uint64(0), carried[1].Load()
	for _, tr := range all {
		for _, n := range tr.shared.start.Read().Requests {
			before += n
		}
	}
	told := make([][]Epoch, len(all))
	err := m.each(func(node int) error {
		for range 2 {
			if err := all[node].epoch(t.Context()); err != nil {
				return err
			}
		}
		told[node] = all[node].history
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range told[0] {
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
	shards := communities(t, 1500)
	const nodes = 4
	for way, sharing := range ways() {
		r := small("sage")
		r.Sharing = sharing
		m := newMesh(nodes, uneven(len(shards), nodes))
		all := m.start(t, r, shards, Options{Threads: 1})
		err := m.each(func(node int) error {
			tr := all[node]
			tr.batches.shuffle(1)
			s := tr.batches.slots[0]
			tr.batches.set(s, 2)
			if err := tr.batches.hands[0].fill(t.Context(), s, &tr.phases, 1); err != nil {
				return err
			}
			near, far := map[uint32]bool{}, map[uint32]bool{}
			for i := range s.groups {
				for _, v := range s.groups[i].outermost() {
					if tr.shared.layout.Owner(v) == node {
						near[v] = true
					} else {
						far[v] = true
					}
				}
			}
			if s.remote != len(far) || s.gathered != len(near)+len(far) {
				return fmt.Errorf("%d rows are gathered, %d of them elsewhere, of %d and %d", s.gathered, s.remote, len(near)+len(far), len(far))
			}
			if n := s.tally.Read().Requests[strategy.Feature]; n > nodes-1 {
				return fmt.Errorf("%d questions for rows", n)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// cancelAfter ends a run at some question of some node.
func cancelAfter(t *testing.T, m *mesh, questions int64) context.Context {
	return cancelAfterThose(t, m, questions, func(strategy.Query) bool { return true })
}

// cancelInEpochs counts those of epochs alone: how many nodes ask each other to measure the
// network depends on time.
func cancelInEpochs(t *testing.T, m *mesh, questions int64) context.Context {
	return cancelAfterThose(t, m, questions, func(q strategy.Query) bool { return q.Epoch > 0 })
}

func cancelAfterThose(t *testing.T, m *mesh, questions int64, counts func(strategy.Query) bool) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	var left atomic.Int64
	left.Store(questions)
	m.net.Trouble = func(_ context.Context, _, _ int, q strategy.Query) error {
		if counts(q) && left.Add(-1) == 0 {
			cancel(errEnough)
		}
		return nil
	}
	return ctx
}

// However often a job is interrupted, and on however many nodes it goes on, some of
// which know nothing of it, its weights are those of a job left alone.
func TestWhatIsInterruptedGoesOnOnOtherNodes(t *testing.T) {
	shards := communities(t, 1500)
	random := rand.New(rand.NewPCG(3, 4))
	r := small("sage")
	r.Sharing.Deterministic = true
	_, one := mustRun(t, r, shards, Options{Threads: 1})
	for way, sharing := range ways() {
		r.Sharing = sharing
		r.Sharing.Deterministic = true
		folders := map[int]string{}
		for node := range 5 {
			folders[node] = t.TempDir()
		}
		told := map[int]Epoch{}
		runs, done := 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 3, 5}[runs%3]
			m := newMesh(nodes, uneven(len(shards), nodes))
			ctx := cancelAfter(t, m, int64(nodes*(nodes-1))*(10+random.Int64N(25)))
			start := time.Now()
			_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%5] // which node it is changes, too
			})
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%s: a run of %d nodes took %v", way, nodes, took)
			}
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatalf("%s: %v", way, err)
			}
			for _, of := range epochs {
				for _, e := range of {
					if before, twice := told[e.Epoch]; twice && before.Hash != e.Hash {
						t.Errorf("%s: epoch %d is told with other weights", way, e.Epoch)
					}
					told[e.Epoch] = e
				}
			}
			done = err == nil
		}
		var all []Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, told[n])
		}
		if runs < 3 || learnt(all) != learnt(one) {
			t.Errorf("%s: after %d runs\n%s\nand undisturbed\n%s", way, runs, learnt(all), learnt(one))
		}
	}
}

// Steps of a mesh allocate for its questions alone: a few small things for each, however
// large the batch.
func TestStepsOfAMeshAllocateLittle(t *testing.T) {
	shards := communities(t, 3000)
	for way, sharing := range ways() {
		r := small("sage")
		r.Sharing, r.Batch, r.Epochs = sharing, 120, 100
		allocateLittle(t, way, r, shards)
		allocateLittle(t, way+", a sweep", swept(r, "lr=0.01", "hidden=5", "lr=0.03"), shards)
	}
}

func allocateLittle(t *testing.T, way string, r Recipe, shards []*graph.Shard) {
	t.Helper()
	var asked atomic.Int64
	m := newMesh(3, uneven(len(shards), 3))
	m.net.Trouble = func(context.Context, int, int, strategy.Query) error {
		asked.Add(1)
		return nil
	}
	all := m.start(t, r, shards, Options{Threads: 1})
	epoch := func() (allocated uint64) {
		var before, after runtime.MemStats
		asked.Store(0)
		runtime.ReadMemStats(&before)
		err := m.each(func(node int) error {
			for _, l := range all[node].learners {
				l.at.Epoch, l.at.Step = l.at.Epoch+1, 0
			}
			return all[node].steps(t.Context())
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
	if most := uint64(12*asked.Load()) + uint64(20*all[0].batches.steps); least > most || asked.Load() == 0 {
		t.Errorf("%s: an epoch of %d steps with %d questions allocates %d times", way, all[0].batches.steps, asked.Load(), least)
	}
}

// Three nodes learn what one does, though not to the last digit.
func TestCoraIsLearntByThreeNodes(t *testing.T) {
	shards := coraShards(t)
	r := coraRecipe("gcn")
	r.Epochs = 100
	one, _ := mustRun(t, r, shards, Options{Threads: 1})
	r.Sharing.Strategy = strategy.Leap
	three, _ := newMesh(3, []int{0, 1, 2, 1}).mustRun(t, r, shards, Options{Threads: 1})
	want, got := one.Best.Eval.Test.Accuracy, three[0].Best.Eval.Test.Accuracy
	if got < want-0.01 || got > want+0.01 {
		t.Errorf("three nodes reach %g and one %g", got, want)
	}
}

// One seat's folder has a damaged checkpoint: another node's is taken.
func TestADamagedCheckpointIsReplacedByAnothers(t *testing.T) {
	shards := communities(t, 1500)
	r := short("gcn")
	r.Sharing = ways()["leap"]
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	folder := func(node int) string { return folders[node] }
	o := Options{Threads: 1, Resume: true, Dataset: "d"}
	run := func() error {
		_, _, err := newMesh(3, uneven(len(shards), 3)).run(t.Context(), r, shards, o, folder)
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(folders[0], CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	damage := func(nodes ...int) {
		for _, node := range nodes {
			if err := os.WriteFile(filepath.Join(folders[node], CheckpointFile), whole[:len(whole)/2], 0o600); err != nil {
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
	shards := communities(t, 1500)
	r := small("gcn")
	r.Batch, r.Fanouts, r.Epochs, r.Sharing = 0, nil, 8, ways()["tuned"]
	_, told := newMesh(3, []int{0, 1, 2, 0, 1}).mustRun(t, r, shards, Options{Threads: 1})
	// The first two epochs have all slots, the third one less, since the second was the
	// fastest that counts.
	for i, want := range []int{3, 3, 2} {
		if got := told[0][i].Slots; got != want {
			t.Errorf("epoch %d had %d slots, not %d", i+1, got, want)
		}
	}
}
