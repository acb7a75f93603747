package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

func averaged(every int) strategy.Settings {
	if every == 0 {
		return strategy.Given("local") // by default
	}
	return strategy.Given("local", fmt.Sprintf("local.average_every=%d", every))
}

func options() train.Options {
	return train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
}

// descent is a recipe of plain gradient descent, in float64, for one epoch.
func descent(model string) recipe.Recipe {
	r := traintest.ExactRecipe(model)
	r.Optimizer.Kind, r.Rate, r.Epochs, r.EvalEvery = "sgd", 0.05, 1, 1<<20
	return r
}

// learnt returns the weights after a recipe on three nodes, which must be the same on
// all, and the epochs of the first node.
func learnt(t *testing.T, r recipe.Recipe, shards []*graph.Shard) ([]float64, []trained.Epoch) {
	t.Helper()
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	all := m.Start(t, r, shards, traintest.Wide(options()))
	if err := m.Together(t, func(ctx context.Context, node int) error { return all[node].Run.Train(ctx) }); err != nil {
		t.Fatal(err)
	}
	for node, l := range all {
		if l.Hash() != all[0].Hash() {
			t.Errorf("node %d has other weights than node 0", node)
		}
	}
	return traintest.NumbersOf(all[0]), all[0].History
}

// A simulation trains three models in one process, each on its slice of every batch.
func simulation(t *testing.T, r recipe.Recipe, shards []*graph.Shard, every int) []float64 {
	r.Sharing = strategy.Settings{}
	one := traintest.Started(t, r, shards, traintest.Wide(options()))
	b, s := one.Run.Batches, one.Run.Batches.Slots[0]
	start := traintest.Initial(t, one.Model, r.Seed)
	models := [][]float64{slices.Clone(start), slices.Clone(start), slices.Clone(start)}
	b.Shuffle(1)
	one.At.Epoch = 1
	for step := range b.Steps {
		batch := slices.Clone(b.Roots(step))
		for node, w := range models {
			s.Step, s.Roots = step, deal.Slice(batch, node, len(models))
			if err := one.Run.Method.Prepare(t.Context(), b.Workers[0], s, 1); err != nil {
				t.Fatal(err)
			}
			one.Run.Device.Write(one.Weights, w)
			one.Run.Device.Zero(one.Gradients)
			if _, wrong := traintest.BatchedOf(one).Learn(one, s, &s.Groups[0]); wrong != "" {
				t.Fatal(wrong)
			}
			// A model counts the losses of its slice as if it were all there is.
			by := float64(len(s.Roots)) * float64(len(models)) / float64(len(batch))
			for i, g := range traintest.GradientOf(one) {
				w[i] -= r.Rate * (by*g + r.Optimizer.WeightDecay*w[i])
			}
		}
		if (step+1)%every == 0 || step+1 == b.Steps {
			for i := range start {
				mean := (models[0][i] + models[1][i] + models[2][i]) / 3
				models[0][i], models[1][i], models[2][i] = mean, mean, mean
			}
		}
	}
	return models[0]
}

// Whatever is learnt, by models of any kind.
func TestModelsAreAveraged(t *testing.T) {
	for _, kind := range task.Kinds {
		if !kind.Pairs { // which local does not learn
			r := descent("sage")
			r.Learn(kind)
			isAveraged(t, kind.Name, r, enginetest.TinyTargets(t, kind.Targets, 150, 6))
		}
	}
	r := descent("rgcn")
	r.Model.Tell(4, "")
	isAveraged(t, "relations", r, traintest.Cut(t, enginetest.Typed("wrote", "edited", enginetest.Back+"wrote", enginetest.Back+"edited"), 6))
	r = descent("mpnn")
	r.Model.EdgeFeatures = enginetest.DescribedColumns
	isAveraged(t, "features of edges", r, traintest.Cut(t, enginetest.Described(true), 6))
}

// isAveraged fails the test unless three nodes learn what the average of three models does.
func isAveraged(t *testing.T, name string, r recipe.Recipe, shards []*graph.Shard) {
	t.Helper()
	for _, every := range []int{1, 2, 3, 1000} {
		r.Sharing = averaged(every)
		got, history := learnt(t, r, shards)
		if d := traintest.Distance(got, simulation(t, r, shards, every)); !(d < 1e-10) {
			t.Errorf("%s: averaged every %d steps, the weights are %.3g off", name, every, d)
		}
		if e := history[0]; e.Steps < 4 || e.Sent.Bytes[peer.Model] != 0 || e.Sent.Requests[peer.Feature] == 0 {
			t.Errorf("%s: an epoch of %d steps has sent %+v", name, e.Steps, e.Sent)
		}
	}
}

// Rows of other nodes come once where nodes keep them, and the models learn the same.
func TestRowsComeOnce(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs, r.EvalEvery = 3, 3
	run := func(set ...string) []trained.Epoch {
		r.Sharing = strategy.Given("local", set...)
		_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, options())
		return reports[0]
	}
	off, kept := run("local.cache=off"), run()
	for i := range kept {
		k, o := kept[i], off[i]
		if k.Hash != o.Hash || o.Rows.Kept > 0 || k.Rows.Remote+k.Rows.Kept != o.Rows.Remote || i > 0 && k.Sent.Bytes[peer.Feature] >= o.Sent.Bytes[peer.Feature]/2 {
			t.Errorf("epoch %d: %+v, and %+v with none kept", i+1, k.Rows, o.Rows)
		}
	}
}

// Plain descent is linear in the gradient: the average of models after one step each is
// the model after one step with the gradients of all.
func TestAnAverageAfterEachStepIsCentric(t *testing.T) {
	shards := traintest.Tiny(t, 150, 6)
	r := descent("sage")
	r.Epochs, r.Batch = 2, 15 // a multiple of the nodes: slices are of one size
	r.Sharing = strategy.Settings{Strategy: "centric"}
	want, added := learnt(t, r, shards)
	bytes := map[int]uint64{}
	for _, every := range []int{1, 3} {
		r.Sharing = averaged(every)
		got, history := learnt(t, r, shards)
		if d := traintest.Distance(got, want); (d < 1e-6) != (every == 1) {
			t.Errorf("averaged every %d steps, the weights are %.3g off those of centric", every, d)
		}
		bytes[every] = history[1].Sent.Bytes[peer.Gradient]
	}
	if of := added[1].Sent.Bytes[peer.Gradient]; bytes[3] >= of/2 {
		t.Errorf("averages every 3 steps take %d bytes, and sums of gradients %d", bytes[3], of)
	}
}

func TestItLearns(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs, r.Batch, r.Sharing = 8, 60, averaged(0)
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, options())
	first, last := reports[0][0], reports[0][len(reports[0])-1]
	if !(last.Loss < 0.8*first.Loss) || last.Eval == nil || !(last.Scores.Test.Accuracy > 0.8) {
		t.Errorf("from %+v\nto %+v", first, last)
	}
	// One node has the only model.
	_, one := traintest.NewMesh(1, make([]int, len(shards))).MustRun(t, r, shards, options())
	r.Sharing = strategy.Settings{}
	if _, single := traintest.MustRun(t, r, shards, options()); traintest.Learnt(one[0]) != traintest.Learnt(single) {
		t.Error("one node learns something else than single does")
	}
}

// A run that is cancelled goes on from the last average, and comes to the same weights.
func TestItGoesOnFromTheLastAverage(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs, r.Batch, r.Sharing = 3, 60, averaged(3)
	_, want := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, options())
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	reports := map[int]trained.Epoch{}
	runs := 0
	for done := false; !done; runs++ {
		if runs == 50 {
			t.Fatal("it does not get anywhere")
		}
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		o := options()
		o.Resume, o.Interval = true, time.Nanosecond
		_, epochs, err := m.Run(traintest.CancelInEpochs(t, m, 180), r, shards, o, func(node int) string { return folders[node] })
		if err != nil && !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
		done = err == nil
		for _, e := range epochs[0] {
			reports[e.Epoch] = e
		}
	}
	var all []trained.Epoch
	for n := 1; n <= r.Epochs; n++ {
		all = append(all, reports[n])
	}
	if runs < 2 || traintest.Learnt(all) != traintest.Learnt(want[0]) {
		t.Errorf("after %d runs\n%s\nand undisturbed\n%s", runs, traintest.Learnt(all), traintest.Learnt(want[0]))
	}
}

// The models of a sweep are averaged each by itself.
func TestASweepLearnsWhatJobsOfTheirOwnDo(t *testing.T) {
	shards := traintest.Communities(t, 600)
	r := traintest.Short("gcn")
	r.Batch, r.Sharing = 60, averaged(2)
	swept := traintest.Swept(r, "lr=0.01", "lr=0.03")
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	results, _ := m.MustRun(t, swept, shards, options())
	for i, rate := range []float64{0.01, 0.03} {
		r.Rate = rate
		alone, _ := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, options())
		if got, want := results[0].Models[i].Last.Hash, alone[0].Last.Hash; got != want || got == "" {
			t.Errorf("with a rate of %g the sweep has %s, and a job of its own %s", rate, got, want)
		}
	}
}

func TestWhatItRefuses(t *testing.T) {
	about := dataset.Describe(traintest.Communities(t, 600))
	r := traintest.Small("gcn")
	r.Sharing = averaged(0)
	if err := r.Check(about, strategies.All); err != nil {
		t.Error(err)
	}
	r.Sharing.Deterministic = true
	if err := r.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), "{deterministic} promises that they don't") {
		t.Error(err)
	}
	for _, c := range []struct {
		a, b strategy.Settings
		same bool
	}{
		{averaged(0), averaged(8), true},
		{averaged(0), averaged(4), false},
		{averaged(0), strategy.Settings{Strategy: "centric"}, false},
		{strategy.Settings{Strategy: "leap"}, strategy.Settings{Strategy: "centric"}, true},
	} {
		if strategies.All.Declared().Same(&c.a, &c.b) != c.same {
			t.Errorf("%+v and %+v: not %v", c.a, c.b, c.same)
		}
	}
	s := strategy.Given("", "local.average_every=4")
	for _, asked := range []string{strategy.Auto, "leap"} {
		if err := strategies.All.Declared().CheckUse(&s, asked); err == nil || !strings.Contains(err.Error(), "{local.average_every}=4 is for {strategy} local") {
			t.Errorf("%s: %v", asked, err)
		}
	}
}
