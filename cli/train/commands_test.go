package train_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/node/api"
	"golang.org/x/sys/unix"
)

func TestWhatIsTrained(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	spec := filepath.Join(t.TempDir(), "spec.toml")
	err := os.WriteFile(spec, []byte(`
dataset = "reddit"
model = "gat"
hidden = 8
dropout = 0.6
lr = 1
residual = true
fanout = [25, 10]
batch = 1024
strategy = "leap"
deterministic = true
seed = 5
[set]
gat.version = 2
"model.head" = "linear"
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"--dataset cora",
		"--dataset cora --model sage --layers 2 --hidden 64 --heads 1 --dropout 0.5 --lr 0.01 --weight-decay 0 --optimizer adamw --epochs 50 --batch full" +
			" --fanout full --normalize-features row --norm layer --residual=false --patience 0 --eval-every 5 --split 1 --seed 18446744073709551615" +
			" --strategy single --deterministic --set sage.aggregator=max --class-weights balanced --set a=b=c",
		"--dataset cora --task link --edge-split 0.8,0.05,0.15 --negatives batch:2 --decoder mlp --set link.ranks=all",
		"--dataset cora --from j3 --lr 0.5",
		"--spec " + spec,
		"--spec " + spec + " --dataset cora --hidden 16 --fanout 5,full --set gat.version=1",
	} {
		if _, stderr, code := hopmesh(t.Context(), append(strings.Fields("train start "+args), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	f := func(x float64) *float64 { return &x }
	i := func(x int) *int { return &x }
	yes, no, most, five := true, false, uint64(1<<64-1), uint64(5)
	want := []any{
		api.TrainRequest{Dataset: "cora"},
		api.TrainRequest{
			Dataset: "cora", Model: "sage", Layers: i(2), Hidden: i(64), Heads: i(1), Dropout: f(0.5), Rate: f(0.01), WeightDecay: f(0), Optimizer: "adamw",
			Epochs: i(50), Batch: i(0), Features: "row", Norm: "layer", Residual: &no, Patience: i(0), EvalEvery: i(5), Split: i(1), Seed: &most,
			Strategy: "single", Deterministic: true, Set: []api.Setting{{Key: "sage.aggregator", Value: "max"}, {Key: "a", Value: "b=c"}, {Key: "train.class_weights", Value: "balanced"}},
		},
		api.TrainRequest{Dataset: "cora", Task: "link", EdgeSplit: []float64{0.8, 0.05, 0.15}, Set: []api.Setting{{Key: "link.ranks", Value: "all"}, {Key: "link.decoder", Value: "mlp"}, {Key: "link.negatives", Value: "batch:2"}}},
		api.TrainRequest{Dataset: "cora", From: "j3", Rate: f(0.5)},
		api.TrainRequest{
			Dataset: "reddit", Model: "gat", Hidden: i(8), Dropout: f(0.6), Rate: f(1), Residual: &yes, Fanout: []int{25, 10}, Batch: i(1024), Seed: &five, Strategy: "leap", Deterministic: true,
			Set: []api.Setting{{Key: "gat.version", Value: "2"}, {Key: "model.head", Value: "linear"}},
		},
		api.TrainRequest{
			Dataset: "cora", Model: "gat", Hidden: i(16), Dropout: f(0.6), Rate: f(1), Residual: &yes, Fanout: []int{5, 0}, Batch: i(1024), Seed: &five, Strategy: "leap", Deterministic: true,
			Set: []api.Setting{{Key: "model.head", Value: "linear"}, {Key: "gat.version", Value: "1"}},
		},
	}
	for n := range want {
		if n >= len(b.Made) || !reflect.DeepEqual(b.Made[n], want[n]) {
			t.Errorf("asked for %+v, want %+v", b.Made[n], want[n])
		}
	}
}

// An interrupt ends the watching and not the job, and says so.
func TestInterruptedWatch(t *testing.T) {
	for _, args := range []string{"train watch j7", "train start --dataset cora --watch"} {
		b := clitest.Healthy()
		b.Open = true
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		var out, diag strings.Builder
		stop := func() { interrupt(errors.New("signal")) }
		code := cli.Execute(ctx, root(), append(strings.Fields(args), "--addr", clitest.Serve(t, b)), &out, clitest.FirstWrite(&diag, stop))
		if code != 0 || !strings.Contains(diag.String(), "continues") || !strings.Contains(diag.String(), "hopmesh train stop j7") {
			t.Errorf("%s: %d %q", args, code, diag.String())
		}
	}
}

func TestFilesAreWhole(t *testing.T) {
	b := clitest.Healthy()
	b.File = []byte(strings.Repeat("numbers ", 100_000))
	addr, dir := clitest.Serve(t, b), t.TempDir()
	for _, args := range []string{
		"predict j7 --embeddings --out " + dir + "/a.NPY", "predict j7 --json --out " + dir + "/a.parquet", "export j7 --out " + dir + "/a.safetensors",
		"predict j7 --model-index 0 --out " + dir + "/b.npy", "export j7 --model-index 3 --out " + dir + "/b.safetensors",
	} {
		out, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...)
		if code != 0 || stderr != "" || !strings.Contains(out, "a.") && !strings.Contains(out, "b.") {
			t.Errorf("%s: %d %s%s", args, code, out, stderr)
		}
	}
	want := []any{
		api.PredictRequest{Format: ".npy", Embeddings: true}, api.PredictRequest{Format: ".parquet"}, api.ExportRequest{},
		api.PredictRequest{Format: ".npy", Index: new(0)}, api.ExportRequest{Index: new(3)},
	}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("asked for %+v", b.Made)
	}
	for _, name := range []string{"a.NPY", "a.parquet", "a.safetensors", "b.npy", "b.safetensors"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != string(b.File) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	// One that goes wrong midway leaves what was there before, and nothing else.
	b.Err = api.Conflict("the disk of alpha is full")
	for _, args := range []string{"predict j7 --out " + dir + "/a.npy", "export j7 --out " + dir + "/a.safetensors"} {
		_, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...)
		if code != 1 || !strings.Contains(stderr, "the disk of alpha is full") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("%v %v", left, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.safetensors")); err != nil || info.Size() != int64(len(b.File)) {
		t.Errorf("%v %v", info, err)
	}
}

// Whoever keeps new files to themselves does so with predictions and weights, too.
func TestFilesHaveTheModeOfTheUmask(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	defer unix.Umask(unix.Umask(0o077))
	for mask, want := range map[int]os.FileMode{0o077: 0o600, 0o027: 0o640, 0o022: 0o644, 0o002: 0o664} {
		unix.Umask(mask)
		dir := t.TempDir()
		for _, args := range []string{"predict j7 --out " + dir + "/a.npy", "export j7 --out " + dir + "/a.safetensors"} {
			_, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...)
			info, err := os.Stat(args[strings.Index(args, dir):])
			if code != 0 || err != nil || info.Mode().Perm() != want {
				t.Errorf("%s under umask %03o: %d %s, %v %v", args, mask, code, stderr, info, err)
			}
		}
	}
}

// Files of pairs are named as the daemon finds them, and what is printed is whole or not at all.
func TestPairsAreAskedFor(t *testing.T) {
	b := clitest.Healthy()
	b.File = []byte("source,target,score\n1,2,0.5\n")
	addr, dir := clitest.Serve(t, b), t.TempDir()
	for _, args := range []string{
		"predict j7 --pairs pairs.csv --relation likes", "predict j7 --pairs /a/pairs.tsv --json", "predict j7 --top 5 --vertices https://b/c.csv --neighbours --task link --out " + dir + "/a.JSON",
	} {
		out, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...)
		if code != 0 || stderr != "" || out != string(b.File) && !strings.Contains(out, "a.JSON") {
			t.Errorf("%s: %d %s%s", args, code, out, stderr)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Pairs: filepath.Join(here, "pairs.csv"), Relation: "likes"}},
		api.PredictRequest{Format: ".json", PairOptions: api.PairOptions{Pairs: "/a/pairs.tsv"}},
		api.PredictRequest{Format: ".json", PairOptions: api.PairOptions{Task: "link", Top: 5, Vertices: "https://b/c.csv", Neighbours: true}},
	}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("asked for %+v", b.Made)
	}
	b.Err = api.Conflict("the disk of alpha is full")
	if out, stderr, code := hopmesh(t.Context(), "predict", "j7", "--top", "2", "--addr", addr); code != 1 || out != "" || !strings.Contains(stderr, "the disk of alpha is full") {
		t.Errorf("%d %q %s", code, out, stderr)
	}
}

func TestWhatIsChangedOrForced(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	for _, args := range []string{"train resume j7", "train resume j7 --lr 0.001", "dataset remove cora", "dataset remove cora --force"} {
		if _, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	want := []any{api.ResumeRequest{}, api.ResumeRequest{Rate: new(0.001)}, false, true}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("asked for %+v", b.Made)
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	addr, dir := clitest.Serve(t, clitest.Healthy()), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a.npy"), 0o700); err != nil {
		t.Fatal(err)
	}
	gone, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gone.Close() }()
	go func() {
		for {
			c, err := gone.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10))
			_ = c.Close()
		}
	}()
	for says, args := range map[string][]string{
		"is a folder: name the file to write":                {"predict", "j7", "--out", filepath.Join(dir, "a.npy"), "--addr", addr},
		"went away before it had answered; no file was writ": {"predict", "j7", "--out", filepath.Join(dir, "b.npy"), "--addr", "unix:" + filepath.Join(dir, "s")},
		"`hopmesh train show` needs JOB":                     {"train", "show", "", "--addr", addr},
	} {
		if _, stderr, code := hopmesh(t.Context(), args...); code == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}

// Stopping a job whose step takes long prints what it waits for.
func TestAStopThatTakesLongSaysSo(t *testing.T) {
	defer train.SetStopQuiet(0)()
	b := clitest.Healthy()
	b.JobInfo = clitest.SharedJob()
	addr := clitest.Serve(t, b)
	for args, want := range map[string]string{
		"train stop j7":        "Waiting for alpha, beta, gamma to finish the current step: job j7 is at epoch 3 of 200, step 5 of 9.\n",
		"train stop j7 --json": "",
	} {
		b.Slow, b.Asked = want != "", make(chan struct{}, 1)
		_, stderr, code := hopmesh(t.Context(), append(strings.Fields(args), "--addr", addr)...)
		if code != 0 || stderr != want {
			t.Errorf("%s: %d %q", args, code, stderr)
		}
	}
	b.Slow = false
	train.SetStopQuiet(time.Hour)
	if _, stderr, code := hopmesh(t.Context(), "train", "stop", "j7", "--addr", addr); code != 0 || stderr != "" {
		t.Errorf("at once: %d %q", code, stderr)
	}
}

// A forecast's page names its command, and has the table and the assumptions.
func TestPageOfAForecast(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	page := filepath.Join(t.TempDir(), "f.md")
	args := []string{"train", "forecast", "--dataset", "cora", "--nodes", "4,16", "--rate", "1gbit", "--set", "wire.features=bf16", "--out", page, "--addr", addr}
	if _, stderr, code := hopmesh(t.Context(), args...); code != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"hopmesh train forecast --dataset cora --nodes 4,16 --rate 1gbit --set wire.features=bf16\n", "Made on 2026-05-04", "| 16 | leap | 6.25s |",
		"- P3 on 4 nodes: a node needs 90.0 GiB of memory and has 64.0 GiB.\n", "- Every node is a machine like this one.\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
