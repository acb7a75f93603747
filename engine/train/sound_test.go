package train_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A rate this large leaves weights that are numbers, and nothing else that is.
func TestEvaluationsThatAreNoNumberEndTheTraining(t *testing.T) {
	r := traintest.Short("gcn")
	r.Rate = 1e30
	dir := t.TempDir()
	_, err := train.Run(t.Context(), r, traintest.Communities(t, 3000), train.Options{Strategies: strategies.All, Threads: 1, Dir: dir})
	if _, ok := errors.AsType[*trained.Diverged](err); !ok || !strings.Contains(err.Error(), "{lr}") {
		t.Error(err)
	}
}

// Moments may overflow where weights don't: such a state is no checkpoint.
func TestCheckpointsCanBeResumed(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, rate := range []float64{1e9, 1e10, 1e11} {
		r := traintest.Small("gcn")
		r.Model.Layers, r.Fanouts, r.Batch, r.Rate, r.Optimizer.WeightDecay = 3, nil, 0, rate, 0
		dir := t.TempDir()
		_, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir})
		if _, ok := errors.AsType[*trained.Diverged](err); err != nil && !ok {
			t.Fatal(err)
		}
		if d, ok := errors.AsType[*trained.Diverged](err); ok && d.Checkpoint == "" && d.Epoch == 1 {
			continue // there was no good step before it
		}
		if _, err := os.Stat(filepath.Join(dir, train.CheckpointFile)); err != nil {
			t.Errorf("rate %g: of before it diverged, nothing is left: %v", rate, err)
			continue
		}
		r.Epochs, r.Rate = r.Epochs+1, 1e-3
		_, err = train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Resume: true})
		if _, ok := errors.AsType[*trained.Diverged](err); err != nil && !ok {
			t.Errorf("rate %g: %v", rate, err)
		}
	}
}

// What a run takes is what it says that it will, whatever the model makes on its way.
func TestTheForecastCoversEvaluationAndAttention(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for name, change := range map[string]func(r *recipe.Recipe){
		"sage":  func(*recipe.Recipe) {},
		"gat":   func(r *recipe.Recipe) { r.Model.Heads, r.Model.OutHeads = 1, 128 },
		"gat 2": func(r *recipe.Recipe) { r.Model.Heads, r.Model.OutHeads, r.Model.Version = 2, 64, 2 },
		"gin":   func(r *recipe.Recipe) { r.Model.Hidden = 256 },
		"gcnii": func(r *recipe.Recipe) { r.Model.Layers, r.Fanouts, r.Model.Hidden = 8, nil, 64 },
	} {
		model, _, _ := strings.Cut(name, " ")
		r := traintest.Small(model)
		change(&r)
		var forecast train.Forecast
		tr := traintest.Started(t, r, shards, train.Options{Threads: 2, Announce: func(f train.Forecast) { forecast = f }})
		if err := tr.Run.Epoch(t.Context()); err != nil {
			t.Fatal(err)
		}
		arenas := []tensor.Arena{tr.Run.Kept, tr.Run.Work}
		for _, s := range tr.Run.Batches.Slots {
			arenas = append(arenas, s.Rows)
		}
		held := tr.Run.Infer.Held()
		for _, a := range arenas {
			if a != nil {
				held += uint64(a.Bytes())
			}
		}
		// Arenas come in pages of 2 MiB, and inference has up to four.
		if most := forecast.Arenas - budget.Program + uint64(len(arenas)+4)<<21; held > most {
			t.Errorf("%s: arenas hold %s, and %s were announced", name, budget.Format(held), budget.Format(most))
		}
	}
}

// An exported model says all of itself that the checkpoint did.
func TestExportsOfExportsAreTheSame(t *testing.T) {
	dir := checkpointed(t, traintest.Short("sage"), traintest.Communities(t, 3000))
	var first, second bytes.Buffer
	if err := trained.Export(&first, filepath.Join(dir, train.CheckpointFile), trained.BestModel); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trained.Export(&second, file, trained.BestModel); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("it changed on the way")
	}
}

func TestAnArenaThatCannotBeHadIsAnError(t *testing.T) {
	tr := traintest.Started(t, traintest.Small("sage"), traintest.Communities(t, 3000), train.Options{Threads: 1})
	if err := tr.Run.Batches.Reserve(1 << 62); err == nil {
		t.Error("it was had")
	}
}
