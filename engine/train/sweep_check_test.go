package train_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// What the models of a sweep must have in common is said in one sentence.
func TestSweepsThatCannotBe(t *testing.T) {
	shards := traintest.Communities(t, 600)
	about := dataset.Describe(shards)
	for want, change := range map[string]func(of *recipe.Recipe){
		"{sweep} batch: all models of a sweep train on the same batches: start one job for each value": func(of *recipe.Recipe) { of.Batch++ },
		"{sweep} fanout: all models":             func(of *recipe.Recipe) { of.Fanouts = []int{5, 4} },
		"{sweep} seed: all models":               func(of *recipe.Recipe) { of.Seed++ },
		"{sweep} normalize-features: all models": func(of *recipe.Recipe) { of.Features = "row" },
		"{sweep} epochs: all models":             func(of *recipe.Recipe) { of.Epochs++ },
		"{sweep} eval-every: all models":         func(of *recipe.Recipe) { of.EvalEvery++ },
		"{sweep} train.loss: the losses":         func(of *recipe.Recipe) { of.Loss = recipe.BCE },
		"{sweep} train.metric: all models":       func(of *recipe.Recipe) { of.Metric = recipe.MacroF1 },
		"{sweep} strategy: all models":           func(of *recipe.Recipe) { of.Sharing.Deterministic = true },
		"{sweep} model: all models":              func(of *recipe.Recipe) { of.Model = traintest.Short("gcn").Model; of.Model.Hidden = 5 },
		"{fanout} has 2 numbers and the model 3": func(of *recipe.Recipe) { of.Model.Layers = 3 },
		"{lr} is -1: give a number above 0":      func(of *recipe.Recipe) { of.Rate = -1 },
		"{sweep}: model 1 is a sweep itself":     func(of *recipe.Recipe) { of.Sweep = make([]recipe.Variant, 1) },
		"{split} is 3, and the dataset has one":  func(of *recipe.Recipe) { of.Split = 3 },
	} {
		r := traintest.Swept(traintest.Short("sage"), "lr=0.01", "lr=0.02")
		change(&r.Sweep[1].Recipe)
		if err := r.Check(about, strategies.All); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
		if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("run: %v, and not %q", err, want)
		}
	}
	full := traintest.Short("sage")
	full.Batch, full.Fanouts = 0, nil
	full = traintest.Swept(full, "lr=0.01", "lr=0.02")
	full.Sweep[1].Recipe.Model.Layers = 3
	if err := full.Check(about, strategies.All); err == nil || !strings.HasPrefix(err.Error(), "{sweep} layers: a model of 2 hops and one of 3 hops can't") {
		t.Error(err)
	}
	full.Sweep[1].Recipe.Model.Model = "gcn"
	if err := full.Check(about, strategies.All); err == nil || !strings.HasPrefix(err.Error(), "{sweep} model: a sage of 2 hops and a gcn of 3 hops can't") {
		t.Error(err)
	}
	columnar := everywhere(traintest.Swept(traintest.Short("sage"), "lr=0.01"), func(of *recipe.Recipe) { of.Sharing.Strategy = "p3" })
	if err := columnar.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), "take another {strategy}, or start one job for each model") {
		t.Error(err)
	}
	many := traintest.Swept(traintest.Short("sage"), slices.Repeat([]string{"lr=0.01"}, recipe.MostModels+1)...)
	if err := many.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), "makes 65 models, and one job trains at most 64") {
		t.Error(err)
	}
	if err := rates(traintest.Short("sage")).Check(about, strategies.All); err != nil {
		t.Error(err)
	}
}

// Auto chooses between those that can train a sweep.
func TestASweepIsNeverSharedByColumns(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := everywhere(rates(traintest.Short("sage")), func(of *recipe.Recipe) { of.Sharing.Strategy = strategy.Auto })
	all := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Start(t, r, shards, train.Options{Threads: 1, Strategies: append(slices.Clone(traintest.Strategies), p3.Strategy)})
	one := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Start(t, r.Models()[0], shards, train.Options{Threads: 1, Strategies: append(slices.Clone(traintest.Strategies), p3.Strategy)})
	for node := range all {
		if m := auto.Sizes(all[node].Run); m.Sum > 0 || m.Weights != 4*one[node].Model.Size() || auto.Sizes(one[node].Run).Sum == 0 {
			t.Errorf("it is chosen for %+v, and for one model %+v", m, auto.Sizes(one[node].Run))
		}
		if got := all[node].Run.Sharing.Strategy; got == "p3" || got == "" {
			t.Errorf("chosen is %q", got)
		}
	}
}

// Each model of a sweep is exported and predicted with by its number, and the best of
// them is that which did best on the validation vertices.
func TestEachModelOfASweepIsExported(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gcn")
	r.Epochs = 3
	r = traintest.Swept(r, "lr=1e-9", "lr=0.03 hidden=5", "lr=0.03", "lr=1e-9 hidden=7")
	dir := t.TempDir()
	result, _ := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir})
	path := filepath.Join(dir, train.CheckpointFile)
	best := result.Best.Model
	if best == 0 || best == 3 {
		t.Errorf("the best model is that of %+v", result.Best)
	}
	exported := map[int]string{}
	for index := trained.BestModel; index < len(r.Sweep); index++ {
		var file bytes.Buffer
		if err := trained.Export(&file, path, index); err != nil {
			t.Fatal(err)
		}
		w, err := trained.ReadWeighed(path, index)
		if err != nil {
			t.Fatal(err)
		}
		of := result.Best
		if index != trained.BestModel {
			of = result.Models[index].Best
		}
		tr := traintest.Started(t, r.Models()[of.Model], shards, train.Options{Threads: 1})
		tr.Run.Device.Write32(tr.Weights, w.Weights)
		if got := tr.Hash(); got != of.Hash || w.Epoch != of.Epoch {
			t.Errorf("model %d is exported with the weights %s of epoch %d, and its best are %s of epoch %d", index, got, w.Epoch, of.Hash, of.Epoch)
		}
		exported[index] = file.String()
		model := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.WriteFile(model, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		a, _ := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All, Threads: 2}, trained.PredictOptions{Index: index})
		for _, at := range []int{0, trained.BestModel} {
			if b, _ := traintest.Predicted(t, model, shards, train.Options{Strategies: strategies.All, Threads: 2}, trained.PredictOptions{Index: at}); !slices.Equal(a, b) {
				t.Errorf("model %d predicts otherwise when it was exported", index)
			}
		}
		if err := trained.Export(&file, model, 1); err == nil || !strings.Contains(err.Error(), "it holds one model, and there is no model 1") {
			t.Error(err)
		}
	}
	if exported[trained.BestModel] != exported[best] || exported[0] == exported[3] {
		t.Error("other models are exported than were asked for")
	}
	for _, index := range []int{-2, 4, 1 << 40} {
		if err := trained.Export(&bytes.Buffer{}, path, index); err == nil || !strings.Contains(err.Error(), "it holds the models 0 to 3 of a sweep, and there is no model") {
			t.Error(err)
		}
	}
	if err := trained.Export(&bytes.Buffer{}, filepath.Join(checkpointed(t, traintest.Short("gcn"), shards), train.CheckpointFile), 1); err == nil || !strings.Contains(err.Error(), "it holds one model") {
		t.Error(err)
	}
}

// The first of those that are equally good is the best.
func TestTheBestOfASweep(t *testing.T) {
	of := func(scores ...float64) (all []trained.State) {
		for _, s := range scores {
			var one trained.State
			if s > 0 {
				one.Best = scored(s, 1)
			}
			all = append(all, one)
		}
		return all
	}
	better := of(0.5, 0.5, 0.5)
	better[2].Best = scored(0.5, 0.9)
	lost := of(0, 0, 0)
	lost[0].Diverged = &trained.Diverged{}
	for want, all := range map[int][]trained.State{0: of(0.5, 0.4, 0.5), 3: of(0.1, 0.2, 0, 0.3), 2: better, 1: lost} {
		if got := trained.BestOf(len(all), func(i int) *trained.State { return &all[i] }); got != want {
			t.Errorf("the best is model %d, not %d", got, want)
		}
	}
}

// A checkpoint of another sweep is refused, and that of one model is none of a sweep.
func TestACheckpointOfAnotherSweepIsRefused(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	base := traintest.Short("gcn")
	dir := checkpointed(t, traintest.Swept(base, "lr=0.01", "hidden=5"), shards)
	single := checkpointed(t, base, shards)
	for want, c := range map[string]struct {
		dir string
		r   recipe.Recipe
	}{
		"it is of 2 models, and this is of 3":    {dir, traintest.Swept(base, "lr=0.01", "hidden=5", "lr=0.1")},
		"it is of 2 models, and this is of 1":    {dir, base},
		"it is of 1 model, and this is of 2":     {single, traintest.Swept(base, "lr=0.01", "hidden=5")},
		"model 1: its recipe has another model:": {dir, traintest.Swept(base, "lr=0.01", "hidden=6")},
	} {
		_, err := train.Run(t.Context(), c.r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: c.dir, Dataset: "d", Resume: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
}

// What is written without a sweep is what was written before there were any.
func TestACheckpointWithoutASweepIsAsItWas(t *testing.T) {
	dir := checkpointed(t, traintest.Short("gcn"), traintest.Communities(t, 1500))
	c, err := safetensors.Open(filepath.Join(dir, train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var keys, names []string
	for key, value := range c.Metadata() {
		keys = append(keys, key)
		if strings.Contains(value, "sweep") || strings.Contains(value, `"diverged"`) || strings.Contains(value, `"model":0`) {
			t.Errorf("%s is %s", key, value)
		}
	}
	for _, of := range c.Tensors() {
		names = append(names, of.Name)
	}
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "about_sha256 classes dataset edges features format history normalize_features recipe state tensors_sha256 updates vertices" {
		t.Error(got)
	}
	if got := strings.Join(names[:5], " "); got != "layers.0.weight layers.0.bias layers.1.weight layers.1.bias optimizer.m.layers.0.weight" || len(names) != 16 {
		t.Error(got, len(names))
	}
}
