package train

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// What the models of a sweep must have in common is said in one sentence.
func TestSweepsThatCannotBe(t *testing.T) {
	shards := communities(t, 600)
	about := Describe(shards)
	for want, change := range map[string]func(of *Recipe){
		"--sweep batch: all models of a sweep train on the same batches: start one job for each value": func(of *Recipe) { of.Batch++ },
		"--sweep fanout: all models":             func(of *Recipe) { of.Fanouts = []int{5, 4} },
		"--sweep seed: all models":               func(of *Recipe) { of.Seed++ },
		"--sweep normalize-features: all models": func(of *Recipe) { of.Features = "row" },
		"--sweep epochs: all models":             func(of *Recipe) { of.Epochs++ },
		"--sweep eval-every: all models":         func(of *Recipe) { of.EvalEvery++ },
		"--sweep train.loss: the losses":         func(of *Recipe) { of.Loss = BCE },
		"--sweep train.metric: all models":       func(of *Recipe) { of.Metric = MacroF1 },
		"--sweep strategy: all models":           func(of *Recipe) { of.Sharing.Deterministic = true },
		"--sweep model: all models":              func(of *Recipe) { of.Model = short("gcn").Model; of.Model.Hidden = 5 },
		"--fanout has 2 numbers and the model 3": func(of *Recipe) { of.Model.Layers = 3 },
		"--lr is -1: give a number above 0":      func(of *Recipe) { of.Rate = -1 },
		"--sweep: model 1 is a sweep itself":     func(of *Recipe) { of.Sweep = make([]Variant, 1) },
		"--split is 3, and the dataset has one":  func(of *Recipe) { of.Split = 3 },
	} {
		r := swept(short("sage"), "lr=0.01", "lr=0.02")
		change(&r.Sweep[1].Recipe)
		if err := r.Check(about); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
		if _, err := Run(t.Context(), r, shards, Options{Threads: 1}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("run: %v, and not %q", err, want)
		}
	}
	full := short("sage")
	full.Batch, full.Fanouts = 0, nil
	full = swept(full, "lr=0.01", "lr=0.02")
	full.Sweep[1].Recipe.Model.Layers = 3
	if err := full.Check(about); err == nil || !strings.HasPrefix(err.Error(), "--sweep layers: a model of 2 hops and one of 3 hops can't") {
		t.Error(err)
	}
	full.Sweep[1].Recipe.Model.Model = "gcn"
	if err := full.Check(about); err == nil || !strings.HasPrefix(err.Error(), "--sweep model: a sage of 2 hops and a gcn of 3 hops can't") {
		t.Error(err)
	}
	columnar := everywhere(swept(short("sage"), "lr=0.01"), func(of *Recipe) { of.Sharing.Strategy = strategy.P3 })
	if err := columnar.Check(about); err == nil || !strings.Contains(err.Error(), "take another --strategy, or start one job for each model") {
		t.Error(err)
	}
	many := swept(short("sage"), slices.Repeat([]string{"lr=0.01"}, mostModels+1)...)
	if err := many.Check(about); err == nil || !strings.Contains(err.Error(), "makes 65 models, and one job trains at most 64") {
		t.Error(err)
	}
	if err := rates(short("sage")).Check(about); err != nil {
		t.Error(err)
	}
}

// Auto chooses between those that can train a sweep.
func TestASweepIsNeverSharedByColumns(t *testing.T) {
	shards := communities(t, 1500)
	r := everywhere(rates(short("sage")), func(of *Recipe) { of.Sharing.Strategy = strategy.Auto })
	all := newMesh(2, uneven(len(shards), 2)).start(t, r, shards, Options{Threads: 1, Strategies: append(slices.Clone(strategies), p3.Strategy{})})
	one := newMesh(2, uneven(len(shards), 2)).start(t, r.Models()[0], shards, Options{Threads: 1, Strategies: append(slices.Clone(strategies), p3.Strategy{})})
	for node := range all {
		if m := all[node].sizes(); m.Sum > 0 || m.Weights != 4*one[node].model.Size() || one[node].sizes().Sum == 0 {
			t.Errorf("it is chosen for %+v, and for one model %+v", m, one[node].sizes())
		}
		if got := all[node].shared.strategy; got == strategy.P3 || got == "" {
			t.Errorf("chosen is %q", got)
		}
	}
}

// Each model of a sweep is exported and predicted with by its number, and the best of
// them is that which did best on the validation vertices.
func TestEachModelOfASweepIsExported(t *testing.T) {
	shards := communities(t, 3000)
	r := small("gcn")
	r.Epochs = 3
	r = swept(r, "lr=1e-9", "lr=0.03 hidden=5", "lr=0.03", "lr=1e-9 hidden=7")
	dir := t.TempDir()
	result, _ := mustRun(t, r, shards, Options{Threads: 2, Dir: dir})
	path := filepath.Join(dir, CheckpointFile)
	best := result.Best.Model
	if best == 0 || best == 3 {
		t.Errorf("the best model is that of %+v", result.Best)
	}
	exported := map[int]string{}
	for index := BestModel; index < len(r.Sweep); index++ {
		var file bytes.Buffer
		if err := Export(&file, path, index); err != nil {
			t.Fatal(err)
		}
		w, err := readWeighed(path, index)
		if err != nil {
			t.Fatal(err)
		}
		of := result.Best
		if index != BestModel {
			of = result.Models[index].Best
		}
		tr := started(t, r.Models()[of.Model], shards, Options{Threads: 1})
		tr.device.Write32(tr.weights, w.weights)
		if got := tr.hash(); got != of.Hash || w.epoch != of.Epoch {
			t.Errorf("model %d is exported with the weights %s of epoch %d, and its best are %s of epoch %d", index, got, w.epoch, of.Hash, of.Epoch)
		}
		exported[index] = file.String()
		model := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.WriteFile(model, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		a, _ := predicted(t, dir, shards, Options{Threads: 2}, PredictOptions{Index: index})
		for _, at := range []int{0, BestModel} {
			if b, _ := predicted(t, model, shards, Options{Threads: 2}, PredictOptions{Index: at}); !slices.Equal(a, b) {
				t.Errorf("model %d predicts otherwise when it was exported", index)
			}
		}
		if err := Export(&file, model, 1); err == nil || !strings.Contains(err.Error(), "it holds one model, and there is no model 1") {
			t.Error(err)
		}
	}
	if exported[BestModel] != exported[best] || exported[0] == exported[3] {
		t.Error("other models are exported than were asked for")
	}
	for _, index := range []int{-2, 4, 1 << 40} {
		if err := Export(&bytes.Buffer{}, path, index); err == nil || !strings.Contains(err.Error(), "it holds the models 0 to 3 of a sweep, and there is no model") {
			t.Error(err)
		}
	}
	if err := Export(&bytes.Buffer{}, filepath.Join(checkpointed(t, short("gcn"), shards), CheckpointFile), 1); err == nil || !strings.Contains(err.Error(), "it holds one model") {
		t.Error(err)
	}
}

// The first of those that are equally good is the best.
func TestTheBestOfASweep(t *testing.T) {
	of := func(scores ...float64) (all []state) {
		for _, s := range scores {
			var one state
			if s > 0 {
				one.Best = judged(s, 1)
			}
			all = append(all, one)
		}
		return all
	}
	better := of(0.5, 0.5, 0.5)
	better[2].Best = judged(0.5, 0.9)
	lost := of(0, 0, 0)
	lost[0].Diverged = &Diverged{}
	for want, all := range map[int][]state{0: of(0.5, 0.4, 0.5), 3: of(0.1, 0.2, 0, 0.3), 2: better, 1: lost} {
		if got := bestOf(len(all), func(i int) *state { return &all[i] }, Accuracy); got != want {
			t.Errorf("the best is model %d, not %d", got, want)
		}
	}
}

// A checkpoint of another sweep is refused, and that of one model is none of a sweep.
func TestACheckpointOfAnotherSweepIsRefused(t *testing.T) {
	shards := communities(t, 1500)
	base := short("gcn")
	dir := checkpointed(t, swept(base, "lr=0.01", "hidden=5"), shards)
	single := checkpointed(t, base, shards)
	for want, c := range map[string]struct {
		dir string
		r   Recipe
	}{
		"it is of 2 models, and this is of 3":    {dir, swept(base, "lr=0.01", "hidden=5", "lr=0.1")},
		"it is of 2 models, and this is of 1":    {dir, base},
		"it is of 1 model, and this is of 2":     {single, swept(base, "lr=0.01", "hidden=5")},
		"model 1: its recipe has another model:": {dir, swept(base, "lr=0.01", "hidden=6")},
	} {
		_, err := Run(t.Context(), c.r, shards, Options{Threads: 1, Dir: c.dir, Dataset: "d", Resume: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
}

// What is written without a sweep is what was written before there were any.
func TestACheckpointWithoutASweepIsAsItWas(t *testing.T) {
	dir := checkpointed(t, short("gcn"), communities(t, 1500))
	c, err := openCheckpoint(filepath.Join(dir, CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var keys, names []string
	for key, value := range c.file.Metadata() {
		keys = append(keys, key)
		if strings.Contains(value, "sweep") || strings.Contains(value, `"diverged"`) || strings.Contains(value, `"model":0`) {
			t.Errorf("%s is %s", key, value)
		}
	}
	for _, of := range c.file.Tensors() {
		names = append(names, of.Name)
	}
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "classes dataset edges features format history normalize_features recipe state tensors_sha256 updates vertices" {
		t.Error(got)
	}
	if got := strings.Join(names[:5], " "); got != "layers.0.weight layers.0.bias layers.1.weight layers.1.bias optimizer.m.layers.0.weight" || len(names) != 16 {
		t.Error(got, len(names))
	}
}
