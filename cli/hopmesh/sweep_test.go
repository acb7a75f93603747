package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sweep as the contract names it.
type shownSweep struct {
	shownJob
	Models []struct {
		Params  map[string]string `json:"params"`
		Best    *shownBest        `json:"best"`
		History []shownEpoch      `json:"history"`
	} `json:"models"`
}

// Each model of a sweep learns what a job of its own does, the best of them is the job's,
// and each can be had.
func TestSweepOnOneNode(t *testing.T) {
	t.Parallel()
	n := meshOf(t, 1)[0]
	n.must(new(any), "dataset", "import", "cora", coraFile)
	same := strings.Fields("--epochs 12 --seed 5 --batch 70 --fanout 10,5")
	sweep := n.begin(append([]string{"--sweep", "lr=0.01,0.1", "--sweep", "hidden=8,16"}, same...)...)
	n.finished(sweep)
	var j shownSweep
	n.must(&j, "train", "show", sweep)
	if len(j.Models) != 4 || j.Epoch != 12 || j.Best == nil {
		t.Fatalf("%+v", j)
	}
	dir, best := t.TempDir(), 0.0
	exported := func(job, file string, args ...string) string {
		path := filepath.Join(dir, file)
		n.must(new(any), append([]string{"export", job, "--out", path}, args...)...)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	whole, matches := exported(sweep, "best.safetensors"), 0
	for i, params := range [][2]string{{"0.01", "8"}, {"0.01", "16"}, {"0.1", "8"}, {"0.1", "16"}} {
		m := j.Models[i]
		if m.Params["lr"] != params[0] || m.Params["hidden"] != params[1] || len(m.Params) != 2 || m.Best == nil {
			t.Fatalf("model %d has %v, its best is %+v", i, m.Params, m.Best)
		}
		alone := n.finished(n.begin(append([]string{"--lr", params[0], "--hidden", params[1]}, same...)...))
		if *m.Best != *alone.Best || len(m.History) != len(alone.History) {
			t.Errorf("model %d: %+v after %d epochs; alone %+v after %d", i, m.Best, len(m.History), alone.Best, len(alone.History))
		}
		for at, e := range m.History {
			if a := alone.History[at]; e.Epoch != a.Epoch || e.Weights != a.Weights || e.Loss != a.Loss || *e.TestAccuracy != *a.TestAccuracy {
				t.Fatalf("model %d learnt %+v, and alone %+v", i, e, a)
			}
		}
		one := exported(sweep, "one.safetensors", "--model-index", string(rune('0'+i)))
		if one != exported(alone.ID, "alone.safetensors") {
			t.Errorf("model %d is another than alone", i)
		}
		if one == whole {
			matches++
			if *m.Best != *j.Best || m.History[0].Weights != j.History[0].Weights {
				t.Errorf("model %d is exported as the best, and is not: %+v, %+v", i, m.Best, j.Best)
			}
		}
		best = max(best, m.Best.ValAccuracy)
	}
	if j.Best.ValAccuracy != best || matches != 1 {
		t.Errorf("the best of %g is %+v, and %d models are exported for it", best, j.Best, matches)
	}
	n.must(new(any), "predict", sweep, "--model-index", "3", "--out", filepath.Join(dir, "out.npy"))
	_, diag, code := hopmesh(t, "export", sweep, "--model-index", "4", "--out", filepath.Join(dir, "five.safetensors"), "--addr", "unix:"+filepath.Join(n.dir, "hopmesh.sock"))
	if code != 1 || !strings.Contains(diag, "has the models 0 to 3") {
		t.Errorf("%d %s", code, diag)
	}
	out, diag, code := hopmesh(t, "train", "show", sweep, "--addr", "unix:"+filepath.Join(n.dir, "hopmesh.sock"))
	if code != 0 || !strings.Contains(out, "MODEL  HIDDEN  LR    EPOCHS") || strings.Count(out, " * ") != 1 {
		t.Errorf("%d %s%s", code, out, diag)
	}
}
