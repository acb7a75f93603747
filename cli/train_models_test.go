package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// sweptJob is a sweep of three models: the last is the best, and stopped early; the second
// diverged before it was evaluated.
func sweptJob() api.Job {
	j := done()
	epoch := func(n, model int, val float64) api.JobEpoch {
		e := anEpoch(n)
		e.Model, e.ValAccuracy, e.Loss = model, new(val), 1/float64(n+model)
		return e
	}
	second := epoch(1, 1, 0.5)
	second.TrainAccuracy, second.ValAccuracy, second.TestAccuracy, second.Eval = nil, nil, nil, nil
	j.Models = []api.JobModel{
		{Params: map[string]string{"lr": "0.01", "hidden": "16"}, Best: &api.JobBest{Epoch: 2, ValAccuracy: new(0.75), TestAccuracy: new(0.8)}, History: []api.JobEpoch{epoch(1, 0, 0.5), epoch(2, 0, 0.75)}},
		{Params: map[string]string{"lr": "1e-3", "hidden": "16\x1b[2J"}, History: []api.JobEpoch{second}},
		{Params: map[string]string{"lr": "0.01", "hidden": "64"}, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79)}, History: []api.JobEpoch{epoch(1, 2, 0.79)}},
	}
	j.Models[1].Diverged = "model 1 (hidden=16\x1b[2J, lr=1e-3) diverged: in epoch 2, step 1, the loss is not finite"
	j.Best, j.History = &api.JobBest{Epoch: 1, Model: new(2), ValAccuracy: new(0.79), TestAccuracy: new(0.8125)}, j.Models[2].History
	return j
}

// What flags say comes before what a spec says of the same key, in whichever table.
func TestFlagsComeBeforeASweepInASpec(t *testing.T) {
	b := healthy()
	addr := serve(t, b)
	spec := filepath.Join(t.TempDir(), "spec.toml")
	if err := os.WriteFile(spec, []byte("dataset = \"cora\"\nhidden = 16\n[set]\ntrain.factor = 0.5\n[sweep]\nlr = [0.1, 0.2]\ngat.version = [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rate, hidden := 0.3, 16
	factor, version := []api.Setting{{Key: "train.factor", Value: "0.5"}}, api.Sweep{Key: "gat.version", Values: []string{"1", "2"}}
	lr := api.Sweep{Key: "lr", Values: []string{"0.1", "0.2"}}
	for args, want := range map[string]api.TrainRequest{
		"--lr 0.3":                     {Dataset: "cora", Hidden: &hidden, Rate: &rate, Set: factor, Sweep: []api.Sweep{version}},
		"--set gat.version=2":          {Dataset: "cora", Hidden: &hidden, Set: append(slices.Clone(factor), api.Setting{Key: "gat.version", Value: "2"}), Sweep: []api.Sweep{lr}},
		"--sweep hidden=8,16":          {Dataset: "cora", Set: factor, Sweep: []api.Sweep{{Key: "hidden", Values: []string{"8", "16"}}}},
		"--sweep train.factor=0.1,0.2": {Dataset: "cora", Hidden: &hidden, Sweep: []api.Sweep{{Key: "train.factor", Values: []string{"0.1", "0.2"}}}},
	} {
		b.made = nil
		_, stderr, code := hopmesh(t.Context(), echo(), append([]string{"train", "start", "--spec", spec, "--addr", addr}, strings.Fields(args)...)...)
		if code != 0 || !reflect.DeepEqual(b.made, []any{want}) {
			t.Errorf("%s: %d %s %+v", args, code, stderr, b.made)
		}
	}
}

func TestSweepsAreAskedFor(t *testing.T) {
	b := healthy()
	addr := serve(t, b)
	spec := filepath.Join(t.TempDir(), "spec.toml")
	err := os.WriteFile(spec, []byte(`
dataset = "cora"
[sweep]
weight-decay = [0, 5e-4]
sage.aggregator = ["mean", "max"]
"train.factor" = [0.5, 0.25]
hidden = "16, 64"
dropout = [0.5, 0]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--dataset", "cora", "--sweep", "lr=0.010, 1e-3", "--sweep", "leap.mode=stay,migrate"},
		{"--spec", spec},
		{"--spec", spec, "--sweep", "lr=1,2"},
	} {
		if _, stderr, code := hopmesh(t.Context(), echo(), append(append([]string{"train", "start"}, args...), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	want := []any{
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{{Key: "lr", Values: []string{"0.010", "1e-3"}}, {Key: "leap.mode", Values: []string{"stay", "migrate"}}}},
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{
			{Key: "weight-decay", Values: []string{"0", "0.0005"}}, {Key: "sage.aggregator", Values: []string{"mean", "max"}},
			{Key: "train.factor", Values: []string{"0.5", "0.25"}}, {Key: "hidden", Values: []string{"16", "64"}}, {Key: "dropout", Values: []string{"0.5", "0"}},
		}},
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{{Key: "lr", Values: []string{"1", "2"}}}},
	}
	if !reflect.DeepEqual(b.made, want) {
		t.Errorf("asked for %+v", b.made)
	}
}

func TestWrongSweepsInSpecs(t *testing.T) {
	addr := serve(t, healthy())
	spec := filepath.Join(t.TempDir(), "spec.toml")
	for says, text := range map[string]string{
		"sweep must be a table, such as [sweep]":           "dataset = \"a\"\nsweep = [\"lr=1,2\"]",
		"sweep.lr must be a string, a number":              "dataset = \"a\"\n[sweep]\nlr = 2020-01-01",
		"--sweep lr has one value at most":                 "dataset = \"a\"\n[sweep]\nlr = 0.1",
		"--sweep can't take fanout, which is the same for": "dataset = \"a\"\n[sweep]\nfanout = [1, 2]",
	} {
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := hopmesh(t.Context(), echo(), "train", "start", "--spec", spec, "--addr", addr)
		if code != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%q: %d %s", text, code, stderr)
		}
	}
}

// What is watched of a sweep is the model that is ahead.
func TestWatchASweep(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := then
	v.now = func() time.Time { return now }
	state := someJobs()[1]
	state.Models = 3
	v.tell(api.JobEvent{State: &state})
	for n := range 2 {
		e := anEpoch(n + 4)
		e.Model = n + 1
		v.tell(api.JobEvent{Epoch: &e})
		now = now.Add(6 * time.Second)
	}
	const want = "Job j8 trains 3 models (sage) on products?[2J on beta, 20 epochs.\n" +
		"epoch 5 of 20, model 2 ahead: loss 0.3000, validation 79.0 %, 2.1ms an epoch\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// The best model may have stopped while others go on.
func TestTopOfASweep(t *testing.T) {
	s := aMesh()
	j := sweptJob()
	j.ID, j.State, j.EpochsTotal, j.Epoch = "j8", "running", 4, 3
	s.Job = &j
	for i := range s.Jobs {
		if s.Jobs[i].ID == "j8" {
			s.Jobs[i].Models = 3
		}
	}
	m := window(s, 120, 40, false)
	m.chosen = "j8"
	frame := m.frame()
	for _, want := range []string{"3 models (sage)", "JOB j8  3 models (gcn) on cora", "50.0 %, 3 of 4", "best 79.0 % in epoch 1 of model 2 (hidden=64, lr=0.01)"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
}
