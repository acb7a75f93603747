package train_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Checkpoints of the first format had other names for the rows, the weights and the scores
// of an epoch.
func TestCheckpointsOfTheFirstFormat(t *testing.T) {
	const stored = `{"epoch":3,"step":1,"early":false,"losses":0,"under":{"epoch":3,"loss":0,"lr":0.5,"seconds":0,"phases":{"sample":0,"gather":0,"compute":0,"wait":0},` +
		`"rows":0,"edges":0,"steps":2,"weights_sha256":""},"waited":0,"stayed":0,"falls":0,"last":{"epoch":2,"model":1,"loss":0.25,"lr":0.5,"seconds":4,` +
		`"phases":{"sample":1,"gather":2,"compute":3,"reduce":4,"wait":5},"rows":10,"edges":20,"steps":2,"weights_sha256":"ab","eval":{"seconds":6,` +
		`"train":{"count":0,"loss":0,"accuracy":0,"macro_f1":0,"roc_auc":0},"val":{"count":2,"loss":7,"accuracy":0.5,"macro_f1":0.75,"roc_auc":0},` +
		`"test":{"count":1,"loss":8,"accuracy":1,"macro_f1":1,"roc_auc":0}},"remote":4,"sent":{"Bytes":[1,2,3,4,5,6,7],"Requests":[8,9,10,11,12,13,14]},` +
		`"strategy":"pipe","why":"w","predicted":{"stages":2,"ways":3,"seconds":9,"compute":1,"halo":1,"boundary":1,"bubble":1,"sum":1,"history":2,"tried":true}}}`
	var s trained.State
	if err := json.Unmarshal([]byte(stored), &s); err != nil {
		t.Fatal(err)
	}
	s.Last.Rank(recipe.MacroF1)
	want := epoch.Record{
		Epoch: 2, Model: 1, Loss: 0.25, Seconds: 4, Phases: epoch.Phases{Sample: 1, Gather: 2, Compute: 3, Reduce: 4, Wait: 5}, Rows: epoch.Rows{Local: 6, Remote: 4},
		Requests: epoch.Requests{Feature: 9, Topology: 10, Activation: 13, Gradient: 12},
		Bytes:    epoch.Bytes{Control: 1, Feature: 2, Topology: 3, Model: 4, Gradient: 5, Activation: 6, Shard: 7},
		Eval: &epoch.Eval{
			Seconds: 6, Val: new(0.5), Test: new(1.0), Score: 0.75, Loss: 7,
			Metrics: &epoch.Metrics{By: recipe.MacroF1, Val: map[string]float64{recipe.MacroF1: 0.75}, Test: map[string]float64{recipe.MacroF1: 1}},
		},
		Hash:     "ab",
		Strategy: "pipe", Why: "w", Predicted: &epoch.Layout{Stages: 2, Ways: 3, Seconds: 9, History: 2},
	}
	if e := s.Last; !reflect.DeepEqual(e.Record, want) || e.Rate != 0.5 || e.Steps != 2 || e.Edges != 20 || s.Under.Epoch != 3 || s.Under.Rate != 0.5 || s.Best != nil {
		t.Errorf("%+v, %+v", s, s.Last.Eval)
	}
	shards, r := traintest.Communities(t, 400), traintest.Short("gcn")
	path := filepath.Join(checkpointed(t, r, shards), train.CheckpointFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := trained.ParseCheckpoint(path, bytes.Replace(older(t, whole), []byte(trained.CheckpointFormat), []byte(trained.FirstCheckpointFormat), 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Runs go on from files of the first format, which hold two of four epochs, and models are
// exported from them.
func TestRunsGoOnFromTheFirstFormat(t *testing.T) {
	shards := traintest.Communities(t, 300)
	brief := func(r recipe.Recipe) recipe.Recipe {
		r.Epochs, r.Model.Hidden = 4, 4
		return r
	}
	one := brief(traintest.Short("gcn"))
	two := brief(traintest.Swept(traintest.Short("gcn"), "lr=0.1", "lr=0.01"))
	for i := range two.Sweep {
		two.Sweep[i].Recipe = brief(two.Sweep[i].Recipe)
	}
	for name, r := range map[string]recipe.Recipe{"first-format": one, "first-format-sweep": two} {
		_, want := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
		stored, err := os.ReadFile(filepath.Join("testdata", name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, train.CheckpointFile)
		if err := os.WriteFile(path, stored, 0o600); err != nil {
			t.Fatal(err)
		}
		for index := range r.Models() {
			if err := trained.Export(&bytes.Buffer{}, path, index); err != nil {
				t.Errorf("%s: export model %d: %v", name, index, err)
			}
		}
		var history []trained.Epoch
		_, got := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Dataset: "d", Resume: true, Announce: func(f train.Forecast) { history = f.History }})
		got = append(history, got...)
		if len(got) != len(want) || len(got) != 4*len(r.Models()) {
			t.Fatalf("%s: %d epochs, and %d at once", name, len(got), len(want))
		}
		for i := range want {
			// What was computed on another kind of processor differs in the last digits.
			if g, w := got[i], want[i]; g.Epoch != w.Epoch || g.Model != w.Model || math.Abs(g.Loss-w.Loss) > 1e-4 || g.Rows != w.Rows || math.Abs(*g.Eval.Val-*w.Eval.Val) > 0.02 {
				t.Errorf("%s: epoch %+v, and at once %+v", name, g.Record, w.Record)
			}
		}
	}
}

// Where a checkpoint of another node stands must be a place that a run can have.
func TestPlacesThatNoRunHas(t *testing.T) {
	dir := checkpointed(t, traintest.Short("gcn"), traintest.Communities(t, 600))
	path := filepath.Join(dir, train.CheckpointFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const same = `\"waited\":0`
	whole = older(t, whole) // without a digest
	for _, place := range []string{same, `\"super\":99`, `\"super\":-1`, `\"turned\":9`, `\"ways\":-99`, `\"halo\":-99`} {
		b := bytes.Replace(whole, []byte(same), []byte(place), 1)
		if len(place) != len(same) || place != same && bytes.Equal(b, whole) {
			t.Fatalf("%s does not stand in for %s", place, same)
		}
		c, err := trained.ParseCheckpoint(path, b)
		if (err == nil) != (place == same) || err != nil && !strings.Contains(err.Error(), "it stands in super-epoch") {
			t.Errorf("%s: %v", place, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
