package train_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Steps of batches whose memory has been grown allocate nothing: not the sampler,
// not gathering, not the passes.
func TestStepsAllocateNothing(t *testing.T) {
	dense, sparse := traintest.Communities(t, 3000), traintest.CoraShards(t)
	for _, model := range nn.Models() {
		graphs := map[string][]*graph.Shard{"dense": dense, "sparse": sparse}
		spec := nn.Defaults(model)
		if spec.Related() {
			graphs = map[string][]*graph.Shard{"typed": traintest.Cut(t, enginetest.Typed(bothWays...), 4)}
		}
		if slices.Contains(alongModels, model) {
			graphs["described"] = traintest.Cut(t, enginetest.Described(true), 4)
		}
		for name, shards := range graphs {
			r := traintest.Small(model)
			if tell(&r, 4); name == "described" {
				r.Model.EdgeFeatures = enginetest.DescribedColumns
			}
			r.Model.Layers = 2
			r.Batch = 60
			if model == "mlp" {
				r.Fanouts = nil
			}
			tr := traintest.Started(t, r, shards, train.Options{Threads: 2})
			s, step := tr.Run.Batches.Slots[0], 0
			one := func() {
				tr.Run.Batches.Set(s, step%tr.Run.Batches.Steps)
				if err := tr.Run.Method.Prepare(t.Context(), tr.Run.Batches.Workers[0], s, 1); err != nil {
					t.Fatal(err)
				}
				if _, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, r.Rate); err != nil {
					t.Fatal(err)
				}
				tr.Run.Progress(false)
				step++
			}
			for range 2 * tr.Run.Batches.Steps {
				one()
			}
			if n := testing.AllocsPerRun(20, one); n > 0 {
				t.Errorf("%s, %s: a step allocates %g times", model, name, n)
			}
		}
	}
}

// Nor do those of a device with a memory of its own that holds the graph.
func TestStepsOnADeviceAllocateNothing(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, dropout := range []float64{0, 0.2} {
		r := traintest.Small("sage")
		r.Batch, r.Model.InputDropout = 60, dropout
		tr := traintest.Started(t, r, shards, traintest.Abroad(train.Options{Threads: 2}, nil))
		s, step := tr.Run.Batches.Slots[0], 0
		one := func() {
			tr.Run.Batches.Set(s, step%tr.Run.Batches.Steps)
			if err := tr.Run.Method.Prepare(t.Context(), tr.Run.Batches.Workers[0], s, 1); err != nil {
				t.Fatal(err)
			}
			s.Staged.Arrive()
			if _, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, r.Rate); err != nil {
				t.Fatal(err)
			}
			s.Staged.Leave()
			step++
		}
		for range 2 * tr.Run.Batches.Steps {
			one()
		}
		if n := testing.AllocsPerRun(20, one); n > 0 {
			t.Errorf("input dropout %v: a step allocates %g times", dropout, n)
		}
	}
}

// Whole epochs, with the loader at work, allocate for what they report only.
func TestEpochsAllocateLittle(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("sage")
	r.Batch, r.EvalEvery = 40, 1000
	tr := traintest.Started(t, r, shards, train.Options{Threads: 2})
	epoch := func(n int) (allocated uint64) {
		tr.At.Epoch, tr.At.Step = n, 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := tr.Run.Steps(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	for n := range 8 {
		epoch(1 + n%2)
	}
	least := epoch(1)
	for n := range 6 {
		least = min(least, epoch(1+n%2))
	}
	if steps := uint64(tr.Run.Batches.Steps); least >= steps/2 {
		t.Errorf("an epoch of %d steps allocates %d times", steps, least)
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	before := runtime.NumGoroutine()
	for n := 1; n < 20; n += 3 {
		if _, err := train.Run(endAfter(t, n), traintest.Small("sage"), shards, train.Options{Strategies: strategies.All, Threads: 3}); err == nil {
			break
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

func TestMemoryIsForecastAndHeldAgainstTheBound(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	var f train.Forecast
	o := train.Options{Strategies: strategies.All, Threads: 2, Announce: func(got train.Forecast) { f = got }}
	r := traintest.Short("sage")
	traintest.MustRun(t, r, shards, o)
	if f.Weights == 0 || f.Shards < 3000*20*4 || f.Arenas < budget.Program || f.Arenas > 256<<20 || f.Epochs != 1 || f.Resumed != 0 || len(f.Notes) > 0 {
		t.Errorf("announced is %+v", f)
	}
	o.Memory = f.Arenas
	unbounded := f
	if traintest.MustRun(t, r, shards, o); f.Arenas > o.Memory {
		t.Errorf("%d bytes are announced of %d", f.Arenas, o.Memory)
	}
	if f.Arenas > unbounded.Arenas {
		t.Errorf("bounded it takes %d bytes and unbounded %d", f.Arenas, unbounded.Arenas)
	}
	announced := false
	o.Announce = func(train.Forecast) { announced = true }
	o.Memory = 32 << 20
	if _, err := train.Run(t.Context(), r, shards, o); err == nil || !strings.Contains(err.Error(), "has 32.0 MiB: take a smaller {batch}") || announced {
		t.Errorf("within %d bytes: %v, announced %v", o.Memory, err, announced)
	}
}

// A bound on memory changes how evaluation is done, and nothing that comes of it.
func TestABoundChangesNoBit(t *testing.T) {
	shards := traintest.Communities(t, 3584)
	r := traintest.Short("gcn")
	r.Batch = 40
	_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	tr := traintest.Started(t, r, shards, train.Options{Threads: 2, Dir: t.TempDir()})
	tr.Run.Infer.Limit(1)
	if err := tr.Run.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lasting(tr.At.Last) != lasting(want[0]) {
		t.Errorf("%s and unbounded %s", lasting(tr.At.Last), lasting(want[0]))
	}
}

// No time is counted twice: neither evaluation nor writing checkpoints is training.
func TestSecondsAreOfTrainingAlone(t *testing.T) {
	for _, interval := range []time.Duration{time.Nanosecond, time.Hour} {
		r := traintest.Small("gcn")
		r.Batch, r.Fanouts, r.Epochs = 0, nil, 20
		shards := traintest.Communities(t, 3000)
		start, counted := time.Now(), 0.0
		_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: t.TempDir(), Interval: interval})
		for _, e := range all {
			counted += e.Seconds + e.Eval.Seconds
			if p := e.Phases; p.Compute+p.Wait > e.Seconds || p.Compute <= 0 {
				t.Errorf("epoch %d takes %g s, and its phases are %+v", e.Epoch, e.Seconds, p)
			}
		}
		if whole := time.Since(start).Seconds(); counted > whole {
			t.Errorf("%g s are counted of %g", counted, whole)
		}
	}
}

func TestProgressIsToldNowAndThen(t *testing.T) {
	var last time.Time
	reports := 0
	o := train.Options{Strategies: strategies.All, Threads: 1, Progress: func(p train.Progress) {
		if since := time.Since(last); since < train.ProgressEvery-time.Millisecond {
			t.Errorf("told again after %v", since)
		}
		last = time.Now()
		reports++
		if p.Epoch < 1 || p.Step > p.Steps || p.Steps != 10 {
			t.Errorf("told of %+v", p)
		}
	}}
	traintest.MustRun(t, traintest.Small("sage"), traintest.Communities(t, 3000), o)
	if reports == 0 {
		t.Error("nothing was told")
	}
}

func TestVerticesWithoutALabelCountNowhere(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	var marked, labelled [graph.Test + 1]int
	traintest.Remarked(shards, func(v int, label *int32, mark *graph.Mark) {
		marked[*mark]++
		if v%3 == 0 {
			*label = graph.NoLabel
		} else {
			labelled[*mark]++
		}
	})
	r := traintest.Short("gcn")
	_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	e := all[0].Scores
	if e.Train.Count != labelled[graph.Train] || e.Val.Count != labelled[graph.Validation] || e.Test.Count != labelled[graph.Test] {
		t.Errorf("%d, %d and %d vertices are judged of %v with labels", e.Train.Count, e.Val.Count, e.Test.Count, labelled)
	}
	if want := (labelled[graph.Train] + r.Batch - 1) / r.Batch; all[0].Steps != want || labelled[graph.Train] == marked[graph.Train] {
		t.Errorf("%d steps for %d vertices", all[0].Steps, labelled[graph.Train])
	}
	traintest.Remarked(shards, func(_ int, label *int32, mark *graph.Mark) {
		if *mark == graph.Train {
			*label = graph.NoLabel
		}
	})
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All}); err == nil || !strings.Contains(err.Error(), "no training vertices with a label") {
		t.Error(err)
	}
}

func TestWithoutValidationTheLastEpochIsTheBest(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	traintest.Remarked(shards, func(_ int, _ *int32, mark *graph.Mark) {
		if *mark == graph.Validation {
			*mark = graph.Unmarked
		}
	})
	r := traintest.Small("gcn")
	var f train.Forecast
	dir := t.TempDir()
	result, all := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Announce: func(got train.Forecast) { f = got }})
	if lasting(result.Best) != lasting(all[len(all)-1]) || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "no validation") {
		t.Errorf("the best is %+v, the notes %q", result.Best, f.Notes)
	}
	if _, at := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All}, trained.PredictOptions{}); at.Epoch != r.Epochs {
		t.Errorf("predicted is with epoch %d", at.Epoch)
	}
	if _, err := train.Run(context.Background(), r, shards[:2], train.Options{Strategies: strategies.All}); err == nil {
		t.Error("half of the shards are trained on")
	}
}

// Nor does dealing batches by grains, of which all nodes know who has which.
func TestDealingGrainsAllocatesNothing(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for name, way := range traintest.Ways() {
		r := traintest.Small("gcn")
		r.Sharing = way
		r.Sharing.Deterministic = true
		for node, tr := range traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Start(t, r, shards, train.Options{Threads: 1}) {
			s, step := tr.Run.Batches.Slots[0], 0
			one := func() {
				tr.Run.Batches.Set(s, step%tr.Run.Batches.Steps)
				traintest.BatchedOf(tr).Dealing.Deal(s)
				step++
			}
			for range 2 * tr.Run.Batches.Steps {
				one()
			}
			if n := testing.AllocsPerRun(20, one); n > 0 {
				t.Errorf("%s, node %d: dealing a batch allocates %g times", name, node, n)
			}
		}
	}
}

// Nor do the epochs of pipelines, which are one step each.
func TestPipelinesAllocateNothing(t *testing.T) {
	dense, sparse := traintest.Communities(t, 1500), traintest.CoraShards(t)
	for name, shards := range map[string][]*graph.Shard{"dense": dense, "sparse": sparse} {
		for _, sharing := range []strategy.Settings{
			strategy.Given("pipe", "pipe.period=1048576"),
			strategy.Given("pipe", "pipe.ways=2", "pipe.chunks=4", "pipe.recompute=off", "pipe.period=1048576"),
			strategy.Given("graph", "pipe.ways=3"),
		} {
			r := traintest.FullGraph("gcnii", 3)
			r.Sharing = sharing
			tr := traintest.Started(t, r, shards, train.Options{Threads: 2, Strategies: traintest.Pipelines})
			s, epoch := tr.Run.Batches.Slots[0], 0
			one := func() {
				epoch++
				tr.At.Epoch = epoch
				tr.Run.Batches.Set(s, 0)
				if _, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, r.Rate); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				one()
			}
			if n := testing.AllocsPerRun(10, one); n > 0 {
				t.Errorf("%s, %+v: an epoch allocates %g times", name, sharing, n)
			}
		}
	}
}
