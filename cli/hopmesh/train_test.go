package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
)

// What the contract names, as a program would read it.
type shownJob struct {
	ID          string       `json:"id"`
	State       string       `json:"state"`
	Error       string       `json:"error"`
	Dataset     string       `json:"dataset"`
	Model       string       `json:"model"`
	Strategy    string       `json:"strategy"`
	Why         string       `json:"why"`
	Seed        uint64       `json:"seed"`
	Generation  uint64       `json:"generation"`
	Nodes       []string     `json:"nodes"`
	EpochsTotal int          `json:"epochs_total"`
	Epoch       int          `json:"epoch"`
	Best        *shownBest   `json:"best"`
	History     []shownEpoch `json:"history"`
}

type shownBest struct {
	Epoch        int     `json:"epoch"`
	ValAccuracy  float64 `json:"val_acc"`
	TestAccuracy float64 `json:"test_acc"`
}

type shownEpoch struct {
	Epoch         int                `json:"epoch"`
	Loss          float64            `json:"loss"`
	TrainAccuracy *float64           `json:"train_acc"`
	ValAccuracy   *float64           `json:"val_acc"`
	TestAccuracy  *float64           `json:"test_acc"`
	Seconds       float64            `json:"seconds"`
	Phases        map[string]float64 `json:"phases"`
	Rows          map[string]uint64  `json:"rows"`
	Requests      map[string]uint64  `json:"requests"`
	Bytes         map[string]uint64  `json:"bytes"`
	Eval          *struct {
		Seconds float64           `json:"seconds"`
		Bytes   map[string]uint64 `json:"bytes"`
	} `json:"eval"`
	Generation uint64 `json:"generation"`
	Weights    string `json:"weights_sha256"`
}

func has[V any](t *testing.T, what string, got map[string]V, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, ok := got[k]; !ok {
			t.Errorf("%s lacks %s: %v", what, k, got)
		}
	}
}

func (d *daemon) job(id string) shownJob {
	d.t.Helper()
	var j shownJob
	d.must(&j, "train", "show", id)
	return j
}

// summary is the job without its history.
func (d *daemon) summary(id string) (s shownJob) {
	d.t.Helper()
	var list []shownJob
	d.must(&list, "train", "list")
	for _, j := range list {
		if j.ID == id {
			return j
		}
	}
	return s
}

func (d *daemon) begin(args ...string) string {
	d.t.Helper()
	var id struct {
		ID string `json:"id"`
	}
	d.must(&id, append([]string{"train", "start", "--dataset", "cora"}, args...)...)
	return id.ID
}

func (d *daemon) finished(id string) shownJob {
	d.t.Helper()
	until(d.t, id+" is done", func() bool {
		j := d.summary(id)
		if j.State == "failed" || j.State == "stopped" {
			d.t.Fatalf("job %s is %s: %s", id, j.State, j.Error)
		}
		return j.State == "done"
	})
	return d.job(id)
}

func TestTrainOnOneNode(t *testing.T) {
	t.Parallel()
	n := meshOf(t, 1)[0]
	n.must(new(any), "dataset", "import", "cora", coraFile)
	addr := "unix:" + filepath.Join(n.dir, "hopmesh.sock")
	out, diag, code := hopmesh(t, "train", "start", "--dataset", "cora", "--model", "gcn", "--hidden", "16", "--epochs", "50", "--seed", "3", "--watch", "--addr", addr)
	if code != 0 || !strings.HasPrefix(out, "j1\nJob j1 is done after epoch 50 of 50: best in epoch ") {
		t.Fatalf("%d %s%s", code, out, diag)
	}
	j := n.job("j1")
	if j.ID != "j1" || j.State != "done" || j.Error != "" || j.Dataset != "cora" || j.Model != "gcn" || j.Strategy != "single" || j.Why == "" || j.Seed != 3 ||
		j.Generation == 0 || !slices.Equal(j.Nodes, []string{"n1"}) || j.EpochsTotal != 50 || j.Epoch != 50 || len(j.History) != 50 {
		t.Errorf("%+v", j)
	}
	if j.Best == nil || j.Best.ValAccuracy < 0.6 || j.Best.TestAccuracy < 0.6 || j.Best.TestAccuracy > 1 {
		t.Errorf("best is %+v", j.Best)
	}
	for i, e := range j.History {
		if e.Epoch != i+1 || e.Loss <= 0 || e.Seconds <= 0 || e.Generation != j.Generation || !sha256Hex.MatchString(e.Weights) || e.Eval == nil || e.TestAccuracy == nil {
			t.Fatalf("epoch %d is %+v", i+1, e)
		}
		if e.Epoch == j.Best.Epoch && (*e.ValAccuracy != j.Best.ValAccuracy || *e.TestAccuracy != j.Best.TestAccuracy) {
			t.Errorf("the best epoch %+v is %+v", j.Best, e)
		}
	}
	e := j.History[0]
	kinds := []string{"feature", "topology", "model", "gradient", "activation", "shard", "control"}
	has(t, "phases", e.Phases, "sample", "gather", "compute", "reduce", "wait")
	has(t, "rows", e.Rows, "local", "remote")
	has(t, "requests", e.Requests, "feature", "topology")
	has(t, "bytes", e.Bytes, kinds...)
	has(t, "bytes of the evaluation", e.Eval.Bytes, kinds...)

	dir := t.TempDir()
	for file, magic := range map[string]string{"a.npy": "\x93NUMPY", "a.parquet": "PAR1", "e.npy": "\x93NUMPY"} {
		args := []string{"predict", "j1", "--out", filepath.Join(dir, file)}
		if file == "e.npy" {
			args = append(args, "--embeddings")
		}
		n.must(new(any), args...)
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !bytes.HasPrefix(b, []byte(magic)) {
			t.Errorf("%s: %.20q %v", file, b, err)
		}
		width := map[string]int{"a.npy": 7, "e.npy": 16}[file]
		if shape := fmt.Sprintf("(2708, %d)", width); width > 0 && !bytes.Contains(b[:200], []byte(shape)) {
			t.Errorf("%s begins %q, without %s", file, b[:120], shape)
		}
	}
	n.must(new(any), "export", "j1", "--out", filepath.Join(dir, "m.safetensors"))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("%v %v", left, err)
	}
	// Bad input gets a sentence, and no job comes of it. What is wrong with any dataset is
	// wrong usage.
	for says, args := range map[string]string{
		"--hidden is 0": "--hidden 0", "--fanout has 1 number": "--fanout 10", "there is no setting foo": "--set foo=1", "--split is 3": "--split 3",
		"on 1 nodes": "--strategy leap --set leap.merge=9", "--lr is -1": "--lr -1", "--lr is NaN": "--lr nan", "--dropout": "--dropout 1.5",
	} {
		want := 1
		if strings.Contains(says, " is 0") || strings.Contains(says, "--lr") || says == "--dropout" {
			want = 2
		}
		out, diag, code := hopmesh(t, append([]string{"train", "start", "--dataset", "cora", "--addr", addr}, strings.Fields(args)...)...)
		if code != want || out != "" || !strings.Contains(diag, says) {
			t.Errorf("%s: %d %s%s", args, code, out, diag)
		}
	}
	if j := n.summary("j2"); j.ID != "" {
		t.Errorf("%+v", j)
	}
	_, diag, code = hopmesh(t, "train", "start", "--dataset", "cora", "--lr", "1e30", "--batch", "20", "--watch", "--addr", addr)
	if code != 1 || !strings.Contains(diag, "the training diverged: in epoch") || !strings.Contains(diag, "start again with a smaller --lr") {
		t.Errorf("%d %s", code, diag)
	}
	var settings []map[string]string
	options, diag, code := hopmesh(t, "train", "options", "sage", "--json")
	if err := json.Unmarshal([]byte(options), &settings); err != nil || code != 0 || len(settings) < 5 {
		t.Errorf("%d %s%s", code, options, diag)
	}
}

// A job is stopped and resumed, its daemon killed with -9 in the middle and started
// again: it ends by itself, with the bits and the history of one that nothing
// happened to.
func TestTrainingOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	const epochs, step = 4000, 250
	n := meshOf(t, 1)[0]
	n.must(new(any), "dataset", "import", "cora", coraFile)
	recipe := []string{"--model", "sage", "--hidden", "16", "--epochs", fmt.Sprint(epochs), "--eval-every", "50"}
	calm := n.finished(n.begin(recipe...))

	id := n.begin(recipe...)
	reach := func(epoch int) {
		t.Helper()
		until(t, fmt.Sprintf("epoch %d is known", epoch), func() bool { return n.summary(id).Epoch >= epoch })
		if s := n.summary(id); s.State != "running" || s.Epoch >= epochs {
			t.Fatalf("the job is %s at epoch %d: too fast for this test", s.State, s.Epoch)
		}
	}
	reach(step)
	for range 2 { // a second time changes nothing
		n.must(new(any), "train", "stop", id)
	}
	stopped := n.summary(id)
	if stopped.State != "stopped" {
		t.Fatalf("stopped, it is %+v", stopped)
	}
	n.must(new(any), "train", "resume", id)
	reach(stopped.Epoch + step)
	n.signal(syscall.SIGKILL)
	<-n.done
	n = start(t, n.dir, "--listen", "127.0.0.1:0")
	until(t, "it is back", n.ready)
	reach(stopped.Epoch + step + 1)
	n.signal(syscall.SIGTERM)
	if code := n.exit(); code != 0 {
		t.Errorf("SIGTERM ended the daemon with %d:\n%s", code, n.out)
	}
	n = start(t, n.dir, "--listen", "127.0.0.1:0")
	until(t, "it is back again", n.ready)
	after := n.finished(id)
	if len(calm.History) != epochs || len(after.History) != epochs || *calm.Best != *after.Best {
		t.Fatalf("%d and %d epochs, best %+v and %+v", len(calm.History), len(after.History), calm.Best, after.Best)
	}
	for i := range calm.History {
		if a, b := calm.History[i], after.History[i]; a.Epoch != i+1 || b.Epoch != i+1 || a.Weights != b.Weights || a.Loss != b.Loss {
			t.Fatalf("epoch %d is %+v, undisturbed %+v", i+1, b, a)
		}
	}
}

// What HOPMESH_CPU asks for and can't be is said before anything is computed.
func TestUnknownInstructions(t *testing.T) {
	t.Setenv("HOPMESH_CPU", "nonsense")
	for _, args := range [][]string{{"agent", "--data-dir", box(t)}, {"bench", "kernels"}, {"demo"}} {
		out, diag, code := hopmesh(t, args...)
		if code != 2 || out != "" || strings.Count(diag, "\n") != 1 || !strings.Contains(diag, `HOPMESH_CPU is "nonsense" and not generic`) {
			t.Errorf("%v: %d %s%s", args, code, out, diag)
		}
	}
}

// The program refuses a strategy that it does not have by the names of those that it has,
// before it asks a daemon.
func TestUnknownStrategy(t *testing.T) {
	out, diag, code := hopmesh(t, "train", "start", "--dataset", "g", "--model", "gcn", "--strategy", "ring")
	if code != 2 || out != "" || strings.Count(diag, "\n") != 1 || !strings.Contains(diag, "ring") {
		t.Errorf("%d %s%s", code, out, diag)
	}
	for _, d := range strategies.All {
		if !strings.Contains(diag, d.Name) {
			t.Errorf("%s is not in %q", d.Name, diag)
		}
	}
}

// A job goes on at another rate, a removed job leaves nothing
// behind, and a dataset that comes back serves its models.
func TestJobsEndAndGoOn(t *testing.T) {
	t.Parallel()
	n := meshOf(t, 1)[0]
	n.must(new(any), "dataset", "import", "cora", coraFile)
	addr := "unix:" + filepath.Join(n.dir, "hopmesh.sock")
	id := n.begin("--epochs", "1500")
	until(t, "some epochs are known", func() bool { return n.summary(id).Epoch > 100 })
	if _, diag, code := hopmesh(t, "train", "resume", id, "--lr", "0.001", "--addr", addr); code != 1 || !strings.Contains(diag, "job j1 is running already") {
		t.Errorf("%d %s", code, diag)
	}
	n.must(new(any), "train", "stop", id)
	n.must(new(any), "train", "resume", id, "--lr", "0.001")
	if j := n.finished(id); j.Epoch != 1500 || len(j.History) != 1500 {
		t.Errorf("%+v", j)
	}
	_, diag, code := hopmesh(t, "dataset", "remove", "cora", "--addr", addr)
	if code != 1 || !strings.Contains(diag, "job j1 needs dataset cora") || !strings.Contains(diag, "--force") {
		t.Errorf("%d %s", code, diag)
	}
	file := filepath.Join(t.TempDir(), "a.npy")
	n.must(new(any), "dataset", "remove", "cora", "--force")
	if _, diag, code := hopmesh(t, "predict", id, "--out", file, "--addr", addr); code != 1 || !strings.Contains(diag, "is no longer in the mesh: import it again") {
		t.Errorf("%d %s", code, diag)
	}
	n.must(new(any), "dataset", "import", "cora", coraFile)
	n.must(new(any), "predict", id, "--out", file)
	n.must(new(any), "train", "remove", id)
	until(t, "its files are gone", func() bool {
		left, err := os.ReadDir(filepath.Join(n.dir, "jobs"))
		return err == nil && len(left) == 0
	})
}
