package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

func inflight(k int, deterministic bool) strategy.Settings {
	return strategy.Settings{Strategy: strategy.P3, Deterministic: deterministic, P3: strategy.P3Settings{Inflight: k}}
}

// numbers is a row of weights.
func (t *learner) numbers() []float64 {
	w := make([]float64, t.model.Size())
	t.device.Read(w, t.weights)
	return w
}

// pipelined trains an epoch in this process as one is trained with k steps under way,
// without any of p3: the first layer of step s has the weights before the update of step
// s-(k-1), or those that the epoch begins with; all else has those of now.
func (t *learner) pipelined(ctx context.Context, epoch, k int) error {
	front, err := t.model.Front()
	if err != nil {
		return err
	}
	t.at.Epoch = epoch
	t.batches.shuffle(epoch)
	var before [][]float64 // the update of each step
	for step := range t.batches.steps {
		before = append(before, t.numbers())
		mixed, old := slices.Clone(before[step]), before[max(0, step-(k-1))]
		for _, term := range front.Terms {
			p := term.Param
			copy(mixed[p.Offset:][:p.Rows*p.Cols], old[p.Offset:])
		}
		t.device.Write(t.weights, mixed)
		s := t.batches.slots[0]
		t.batches.set(s, step)
		if err := t.batches.hands[0].fill(ctx, s, &t.phases, epoch); err != nil {
			return err
		}
		if _, wrong, _, err := t.compute(ctx, s); err != nil || wrong != "" {
			return fmt.Errorf("%s: %w", wrong, err)
		}
		t.device.Write(t.weights, before[step])
		t.optimizer.Step(t.weights, t.gradients, t.recipe.Schedule.rate(t.recipe.Rate, epoch, t.recipe.Epochs, 0))
	}
	return nil
}

// Each step sees the weights of the update that it is said to see, and of no other.
func TestStepsUnderWaySeeOlderWeights(t *testing.T) {
	shards := tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage"} {
		r := exactRecipe(model)
		r.Model.Residual, r.Batch = model == "sage", 7
		for k := 1; k <= strategy.MostInflight; k++ {
			want := started(t, r, shards, wide(Options{Threads: 1}))
			for _, nodes := range []int{1, 2, 3} {
				shared := r
				shared.Sharing = inflight(k, nodes != 2)
				m := newMesh(nodes, uneven(len(shards), nodes))
				all := m.start(t, shared, shards, columnwise(wide(Options{Threads: 1})))
				want.device.Write(want.weights, initial(t, want.model, r.Seed))
				for epoch := 1; epoch <= 2; epoch++ {
					if err := want.pipelined(t.Context(), epoch, k); err != nil {
						t.Fatal(err)
					}
					err := m.together(t, func(ctx context.Context, node int) error {
						all[node].at.Epoch, all[node].at.Step = epoch, 0
						return all[node].steps(ctx)
					})
					if err != nil {
						t.Fatal(err)
					}
					for node, tr := range all {
						if d := distance(tr.numbers(), want.numbers()); !(d < 1e-10) || tr.at.Under.Behind != k-1 || want.batches.steps < 2*k {
							t.Fatalf("%s, %d under way on %d nodes: after %d steps of epoch %d node %d is %.3g off, and was %d updates behind",
								model, k, nodes, want.batches.steps, epoch, node, d, tr.at.Under.Behind)
						}
					}
				}
			}
		}
	}
}

// The same bytes travel, weights are as much behind as they are said to be, and a run is
// the same each time; with --deterministic, on any number of nodes.
func TestStepsUnderWaySendTheSame(t *testing.T) {
	shards := communities(t, 1500)
	for _, push := range []string{"resample", "blocks"} {
		var one []Epoch
		for k := 1; k <= strategy.MostInflight; k++ {
			r := small("sage")
			r.Batch = 60
			ways := strategy.P3Settings{Inflight: k, Push: push}
			got, again := epochsOf(t, r, shards, 3, ways), epochsOf(t, r, shards, 3, ways)
			if learnt(got) != learnt(again) {
				t.Errorf("%d under way make\n%s\nand again\n%s", k, learnt(got), learnt(again))
			}
			if k == 1 {
				one = got
			} else if got[0].Hash == one[0].Hash {
				t.Errorf("%d under way make the same weights as one", k)
			}
			for i, e := range got {
				if e.Behind != k-1 {
					t.Errorf("%d under way: epoch %d was %d updates behind", k, e.Epoch, e.Behind)
				}
				if e.Sent != one[i].Sent {
					t.Errorf("%d under way: epoch %d sends %+v, and one under way %+v", k, e.Epoch, e.Sent, one[i].Sent)
				}
			}
		}
	}
	r := small("sage")
	r.Batch, r.Sharing = 60, inflight(3, true)
	want := ""
	for _, nodes := range []int{1, 2, 5} {
		_, told := newMesh(nodes, uneven(len(shards), nodes)).mustRun(t, r, shards, columnwise(Options{Threads: 2}))
		for node, got := range told {
			if want == "" {
				want = learnt(got)
			}
			if learnt(got) != want || got[1].Behind != 2 {
				t.Errorf("node %d of %d:\n%s\nand one node\n%s", node, nodes, learnt(got), want)
			}
		}
	}
}

// A step that is an epoch has nothing to be under way with, and one node that has nobody
// to wait for does not begin with it.
func TestOneStepIsUnderWayAlone(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Batch, r.Fanouts = 0, nil
	one, three := epochsOf(t, r, shards, 3, strategy.P3Settings{}), epochsOf(t, r, shards, 3, strategy.P3Settings{Inflight: 3})
	if learnt(one) != learnt(three) || three[0].Behind != 0 {
		t.Errorf("%s\nand with three under way, %d behind,\n%s", learnt(one), three[0].Behind, learnt(three))
	}
	r = small("gcn")
	if one, three = epochsOf(t, r, shards, 1, strategy.P3Settings{}), epochsOf(t, r, shards, 1, strategy.P3Settings{Inflight: 3}); learnt(one) != learnt(three) || three[0].Behind != 0 {
		t.Errorf("alone:\n%s\nand with three under way, %d behind,\n%s", learnt(one), three[0].Behind, learnt(three))
	}
}

// However often a run is interrupted, and on however many nodes it goes on, what was
// under way is sent again with the weights that it had been sent with: it comes to the
// bits of one that was left alone.
func TestWhatWasUnderWayIsSentAgainAsItWas(t *testing.T) {
	shards := communities(t, 1500)
	random := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{2, 4} {
		r := small("sage")
		r.Batch, r.Sharing = 60, inflight(k, true)
		_, alone := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, columnwise(Options{Threads: 1}))
		folders := map[int]string{}
		for node := range 5 {
			folders[node] = t.TempDir()
		}
		told := map[int]Epoch{}
		runs, within, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 200 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{3, 2, 5}[runs%3]
			m := newMesh(nodes, uneven(len(shards), nodes))
			ctx := cancelAfter(t, m, int64(nodes*nodes)*(20+random.Int64N(60)))
			_, epochs, err := m.run(ctx, r, shards, columnwise(Options{Threads: 1, Resume: true, Dataset: "d"}), func(node int) string {
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
			done = err == nil
			for _, folder := range folders {
				c, err := openCheckpoint(filepath.Join(folder, CheckpointFile))
				if err != nil {
					continue // none yet
				}
				if s := c.models[0].State.Step; s >= k && s < alone[0][0].Steps {
					within++
				}
				if err := c.close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all []Epoch
		for n := 1; n <= r.Epochs; n++ {
			all = append(all, told[n])
		}
		if runs < 4 || within == 0 || learnt(all) != learnt(alone[0]) {
			t.Errorf("%d under way: after %d runs, with %d checkpoints within epochs,\n%s\nand undisturbed\n%s", k, runs, within, learnt(all), learnt(alone[0]))
		}
	}
}

// A checkpoint with another number of steps under way is of another run.
func TestOlderWeightsAreThoseOfTheRecipe(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Sharing = inflight(3, true)
	dir := t.TempDir()
	mustRun(t, r, shards, Options{Threads: 1, Dir: dir})
	r.Sharing.P3.Inflight = 2
	if _, err := Run(t.Context(), r, shards, Options{Threads: 1, Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), "another sharing") {
		t.Error(err)
	}
}

// It is said that gradients are not exact, and nothing is left behind when a run ends
// with steps under way.
func TestStepsUnderWayEndWithTheRun(t *testing.T) {
	shards := communities(t, 1500)
	before, told := runtime.NumGoroutine(), 0
	for n := int64(40); n < 400; n += 90 {
		r := small("gcn")
		r.Batch, r.Sharing = 60, inflight(4, false)
		announced := make(chan Forecast, 3)
		m := newMesh(3, uneven(len(shards), 3))
		_, _, err := m.run(cancelAfter(t, m, n), r, shards, columnwise(Options{Threads: 1, Announce: func(f Forecast) { announced <- f }}), nil)
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		close(announced)
		for f := range announced {
			if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "p3.inflight=4: first layers are computed with weights that are up to 3 updates old") {
				t.Errorf("the notes are %q", f.Notes)
			}
			told++
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before || told == 0 {
		t.Errorf("%d goroutines are left, %d nodes began", after-before, told)
	}
}

// Steps under way diverge in order: each node ends with the same step.
func TestStepsUnderWayDivergeTogether(t *testing.T) {
	shards := spoilt(communities(t, 1500), 1)
	r := small("gcn")
	r.Batch, r.Sharing = 60, inflight(3, false)
	m := newMesh(3, uneven(len(shards), 3))
	steps := make([]int, 3)
	err := m.each(func(node int) error {
		held, own := m.of(node, shards, columnwise(Options{Threads: 1}))
		_, err := Run(t.Context(), r, held, own)
		e, ok := errors.AsType[*Diverged](err)
		if !ok {
			return err
		}
		steps[node] = e.Step
		return nil
	})
	if err != nil || steps[0] == 0 || steps[0] != steps[1] || steps[0] != steps[2] {
		t.Errorf("nodes end at steps %v: %v", steps, err)
	}
}

// Steps under way take no more of Go's heap than steps do that wait for each other.
func TestStepsUnderWayAllocateNothingMore(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": communities(t, 3000), "sparse": coraShards(t)} {
		var takes [2]uint64
		steps := 0
		for i, k := range []int{1, 3} {
			r := small("sage")
			r.Batch, r.EvalEvery, r.Sharing = 10, 1000, inflight(k, true)
			tr := started(t, r, shards, Options{Threads: 2})
			steps = tr.batches.steps
			epoch := func(n int) (allocated uint64) {
				tr.at.Epoch, tr.at.Step = n, 0
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := tr.steps(t.Context()); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			for n := range 8 {
				epoch(1 + n%2)
			}
			takes[i] = epoch(1)
			for range 6 {
				takes[i] = min(takes[i], epoch(1))
			}
		}
		if takes[1] > takes[0]+uint64(steps)/2 {
			t.Errorf("%s: an epoch of %d steps allocates %d times with three under way, and %d times with one", name, steps, takes[1], takes[0])
		}
	}
}
