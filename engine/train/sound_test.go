package train

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A rate this large leaves weights that are numbers, and nothing else that is.
func TestEvaluationsThatAreNoNumberEndTheTraining(t *testing.T) {
	r := short("gcn")
	r.Rate = 1e30
	dir := t.TempDir()
	_, err := Run(t.Context(), r, communities(t, 3000), Options{Threads: 1, Dir: dir})
	if _, ok := errors.AsType[*Diverged](err); !ok || !strings.Contains(err.Error(), "--lr") {
		t.Error(err)
	}
}

// Moments may overflow where weights don't: such a state is no checkpoint.
func TestCheckpointsCanBeResumed(t *testing.T) {
	shards := communities(t, 3000)
	for _, rate := range []float64{1e9, 1e10, 1e11} {
		r := small("gcn")
		r.Model.Layers, r.Fanouts, r.Batch, r.Rate, r.Optimizer.WeightDecay = 3, nil, 0, rate, 0
		dir := t.TempDir()
		_, err := Run(t.Context(), r, shards, Options{Threads: 1, Dir: dir})
		if _, ok := errors.AsType[*Diverged](err); err != nil && !ok {
			t.Fatal(err)
		}
		if d, ok := errors.AsType[*Diverged](err); ok && d.Checkpoint == "" && d.Epoch == 1 {
			continue // there was no good step before it
		}
		if _, err := os.Stat(filepath.Join(dir, CheckpointFile)); err != nil {
			t.Errorf("rate %g: of before it diverged, nothing is left: %v", rate, err)
			continue
		}
		r.Epochs, r.Rate = r.Epochs+1, 1e-3
		_, err = Run(t.Context(), r, shards, Options{Threads: 1, Dir: dir, Resume: true})
		if _, ok := errors.AsType[*Diverged](err); err != nil && !ok {
			t.Errorf("rate %g: %v", rate, err)
		}
	}
}

// Any number may be added to all logits of a row: ranks are of probabilities.
func TestLogarithms(t *testing.T) {
	for _, add := range []float32{0, 100, -100} {
		row := []float32{1 + add, 3 + add, 2 + add}
		logarithms(row)
		for i, want := range []float32{-2.4076059, -0.40760595, -1.4076059} {
			if d := row[i] - want; d < -1e-4 || d > 1e-4 {
				t.Errorf("with %g: %v", add, row)
			}
		}
	}
}

// What a run takes is what it says that it will, whatever the model makes on its way.
func TestTheForecastCoversEvaluationAndAttention(t *testing.T) {
	shards := communities(t, 3000)
	for name, change := range map[string]func(r *Recipe){
		"sage":  func(*Recipe) {},
		"gat":   func(r *Recipe) { r.Model.Heads, r.Model.OutHeads = 1, 128 },
		"gat 2": func(r *Recipe) { r.Model.Heads, r.Model.OutHeads, r.Model.Version = 2, 64, 2 },
		"gin":   func(r *Recipe) { r.Model.Hidden = 256 },
		"gcnii": func(r *Recipe) { r.Model.Layers, r.Fanouts, r.Model.Hidden = 8, nil, 64 },
	} {
		model, _, _ := strings.Cut(name, " ")
		r := small(model)
		change(&r)
		var forecast Forecast
		tr := started(t, r, shards, Options{Threads: 2, Announce: func(f Forecast) { forecast = f }})
		if err := tr.epoch(t.Context()); err != nil {
			t.Fatal(err)
		}
		arenas := []tensor.Arena{tr.kept, tr.work, tr.infer.whole.rows}
		arenas = append(arenas, tr.infer.whole.lanes[1:]...)
		for _, s := range tr.batches.slots {
			arenas = append(arenas, s.rows)
		}
		held := uint64(0)
		for _, a := range arenas {
			if a != nil {
				held += uint64(a.Bytes())
			}
		}
		// Arenas come in pages of 2 MiB.
		if most := forecast.Arenas - atHome + uint64(len(arenas))<<21; held > most {
			t.Errorf("%s: arenas hold %s, and %s were announced", name, gib(held), gib(most))
		}
	}
}

// An exported model says all of itself that the checkpoint did.
func TestExportsOfExportsAreTheSame(t *testing.T) {
	dir := checkpointed(t, short("sage"), communities(t, 3000))
	var first, second bytes.Buffer
	if err := Export(&first, filepath.Join(dir, CheckpointFile), BestModel); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Export(&second, file, BestModel); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("it changed on the way")
	}
}

func TestAnArenaThatCannotBeHadIsAnError(t *testing.T) {
	tr := started(t, small("sage"), communities(t, 3000), Options{Threads: 1})
	if err := tr.batches.reserve(1 << 62); err == nil {
		t.Error("it was had")
	}
}
