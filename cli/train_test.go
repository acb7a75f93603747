package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/node/api"
)

func someOptions() []TrainOption {
	return []TrainOption{
		{Key: "train.schedule", Applies: "train", Values: "constant|step", Default: "constant", Help: "how the rate changes"},
		{Key: "model.head", Values: "none|linear", Default: "none", Help: "what follows the layers"},
		{Key: "sage.aggregator", Applies: "sage", Values: "mean|max|gcn", Default: "mean", Help: "how neighbours become one row"},
		{Key: "leap.mode", Applies: "leap", Values: "auto|stay|migrate", Default: "auto", Help: "whether models tour the nodes"},
		{Key: "topology", Applies: "strategies", Values: "auto|replicated|sharded", Default: "auto", Help: "whether each node has all edges"},
	}
}

func (b *backend) StartJob(_ context.Context, r api.TrainRequest) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, r)
	return "j7", b.err
}

func (b *backend) Jobs(context.Context) ([]api.JobSummary, error) {
	if b.empty || b.err != nil {
		return nil, b.err
	}
	return someJobs(), nil
}

func (b *backend) Job(context.Context, string) (api.Job, error) {
	select {
	case b.asked <- struct{}{}:
	default:
	}
	return b.job, b.err
}

func (b *backend) RemoveJob(context.Context, string) error { return b.err }

func (b *backend) StopJob(ctx context.Context, _ string) error {
	if b.slow {
		select { // until somebody has asked how far the job is
		case <-b.asked:
		case <-ctx.Done():
		}
	}
	return b.err
}

func (b *backend) ResumeJob(_ context.Context, _ string, r api.ResumeRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, r)
	return b.err
}

func (b *backend) WatchJob(ctx context.Context, _ string, tell func(api.JobEvent)) (api.Job, error) {
	if b.err != nil {
		return api.Job{}, b.err
	}
	waits, runs, ends := someJobs()[2], someJobs()[1], someJobs()[0]
	tell(api.JobEvent{State: &waits})
	tell(api.JobEvent{Note: "job j7 waits until job j6\x1b[2J has ended"})
	tell(api.JobEvent{State: &runs})
	tell(api.JobEvent{Progress: &api.JobProgress{Epoch: 1, EpochsTotal: 2, Step: 3, Steps: 9}})
	first := anEpoch(1)
	tell(api.JobEvent{Epoch: &first})
	tell(api.JobEvent{State: &ends})
	if b.open {
		<-ctx.Done()
		return api.Job{}, ctx.Err()
	}
	return b.job, nil
}

func (b *backend) Predict(_ context.Context, _ string, r api.PredictRequest, to io.Writer) error {
	b.mu.Lock()
	b.made = append(b.made, r)
	b.mu.Unlock()
	_, err := to.Write(b.file)
	return errors.Join(b.err, err)
}

func (b *backend) ExportJob(_ context.Context, _ string, r api.ExportRequest, to io.Writer) error {
	b.mu.Lock()
	b.made = append(b.made, r)
	b.mu.Unlock()
	_, err := to.Write(b.file)
	return errors.Join(b.err, err)
}

func anEpoch(n int) api.JobEpoch {
	val, test := 0.79, 0.8125
	return api.JobEpoch{
		Epoch: n, Loss: 1.5 / float64(n), TrainAccuracy: &test, ValAccuracy: &val, TestAccuracy: &test, Seconds: 0.0021,
		Phases: api.JobPhases{Gather: 0.0004, Compute: 0.0015, Wait: 1.2}, Rows: api.JobRows{Local: 2708}, Eval: &api.JobEval{Seconds: 0.001},
		Generation: 12, Weights: strings.Repeat("0a", 32),
	}
}

func done() api.Job {
	second := anEpoch(2)
	second.TrainAccuracy, second.ValAccuracy, second.TestAccuracy, second.Eval = nil, nil, nil, nil
	return api.Job{
		ID: "j7", State: "done", Dataset: "cora\x1b[2J", Model: "gcn", Strategy: "single", Why: "one node trains a job", Seed: 7, Generation: 12,
		Nodes: []string{"alpha"}, EpochsTotal: 2, Epoch: 2, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79), TestAccuracy: new(0.8125)},
		History: []api.JobEpoch{anEpoch(1), second}, Recipe: json.RawMessage(`{"epochs": 2}`),
	}
}

// aSharedEpoch is one of three nodes. Of the kinds of bytes, some were not sent.
func aSharedEpoch(n int) api.JobEpoch {
	e := anEpoch(n)
	e.Seconds, e.Phases = 12.3456, api.JobPhases{Sample: 0.5, Gather: 3.25, Compute: 6.125, Reduce: 1.5, Wait: 0.9706}
	e.Rows, e.Requests = api.JobRows{Local: 12_345_678, Remote: 1_234_567}, api.JobRequests{Feature: 384, Topology: 96}
	e.Bytes = api.JobBytes{Feature: 1_264_196_608, Topology: 3 << 20, Gradient: 90 << 20, Control: 70_000}
	e.Eval = &api.JobEval{Seconds: 2.5, Bytes: api.JobBytes{Activation: 400 << 20, Control: 1000}}
	e.Strategy = "leap"
	return e
}

func sharedJob() api.Job {
	first, second, third := aSharedEpoch(1), aSharedEpoch(2), aSharedEpoch(3)
	second.Why = "models of 1 MiB are smaller than\x1b[2J the rows that they need"
	second.Slots, second.Bytes.Model = 3, 6<<20
	third.Why, third.Slots, third.Bytes.Model = second.Why, 2, 4<<20
	third.TrainAccuracy, third.ValAccuracy, third.TestAccuracy, third.Eval = nil, nil, nil, nil
	j := running()
	j.Strategy, j.Why, j.Nodes = "auto", "nodes choose by what they measure", []string{"alpha", "beta", "gamma"}
	j.History, j.Problems = []api.JobEpoch{first, second, third}, nil
	return j
}

func sharedJobs() []api.JobSummary {
	list := someJobs()
	list[1].Strategy, list[1].Nodes = "leap", []string{"alpha", "beta\x1b[2J", "gamma"}
	list[1].Owners = []int{0, 0, 0, 1, 1, 2, 1, 2, 2, 0}
	list[2].Owners = []int{0, 7, -1} // of a daemon that is broken
	return list
}

func running() api.Job {
	j := done()
	j.State, j.EpochsTotal, j.Epoch, j.Step, j.Steps = "running", 200, 3, 5, 9
	j.Problems = []string{"node alpha, which runs job j7, does not answer: start it again"}
	return j
}

func queued() api.Job {
	j := done()
	j.State, j.Nodes, j.History, j.Best, j.Epoch, j.Generation = "queued", nil, nil, nil, 0, 0
	j.Problems = []string{"job j7 waits until job j6 has ended"}
	return j
}

func failed() api.Job {
	j := done()
	j.State, j.Error = "failed", "the training diverged\x1b[2J: start again with a smaller --lr"
	return j
}

// unjudged is done, on a dataset without validation vertices.
func unjudged() api.Job {
	j := done()
	j.Best = &api.JobBest{Epoch: 2, TestAccuracy: new(0.8125)}
	j.Notes = []string{"split 0 has no validation vertices\x1b[2J: the weights of the last epoch are kept"}
	return j
}

func someJobs() []api.JobSummary {
	return []api.JobSummary{
		{ID: "j7", State: "done", Dataset: "cora", Model: "gcn", Strategy: "single", Epoch: 2, EpochsTotal: 2, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79), TestAccuracy: new(0.8125)}, Nodes: []string{"alpha"}},
		{ID: "j8", State: "running", Dataset: "products\x1b[2J", Model: "sage", Strategy: "single", Epoch: 3, EpochsTotal: 20, Nodes: []string{"beta"}},
		{ID: "j9", State: "queued", Dataset: "cora", Model: "gat", Strategy: "single", EpochsTotal: 200},
	}
}

func TestWhatIsTrained(t *testing.T) {
	b := healthy()
	addr := serve(t, b)
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
			" --strategy single --deterministic --set sage.aggregator=max --set a=b=c",
		"--spec " + spec,
		"--spec " + spec + " --dataset cora --hidden 16 --fanout 5,full --set gat.version=1",
	} {
		if _, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields("train start "+args), "--addr", addr)...); code != 0 {
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
			Strategy: "single", Deterministic: true, Set: []api.Setting{{Key: "sage.aggregator", Value: "max"}, {Key: "a", Value: "b=c"}},
		},
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
		if n >= len(b.made) || !reflect.DeepEqual(b.made[n], want[n]) {
			t.Errorf("asked for %+v, want %+v", b.made[n], want[n])
		}
	}
}

// An interrupt ends the watching and not the job, and says so.
func TestInterruptedWatch(t *testing.T) {
	for _, args := range []string{"train watch j7", "train start --dataset cora --watch"} {
		b := healthy()
		b.open = true
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		var out, diag strings.Builder
		stop := func() { interrupt(errors.New("signal")) }
		code := Execute(ctx, New(echo(), ""), append(strings.Fields(args), "--addr", serve(t, b)), &out, firstWrite{&diag, stop})
		if code != 0 || !strings.Contains(diag.String(), "goes on") || !strings.Contains(diag.String(), "hopmesh train stop j7") {
			t.Errorf("%s: %d %q", args, code, diag.String())
		}
	}
}

func TestWatchInLines(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := then
	v.now = func() time.Time { return now }
	state := someJobs()[1]
	v.tell(api.JobEvent{State: &state})
	for n := range 12 { // an epoch a second: a line every five
		e := anEpoch(n + 4)
		now = now.Add(time.Second)
		v.tell(api.JobEvent{Progress: &api.JobProgress{Epoch: n + 4, Step: 1, Steps: 9}})
		v.tell(api.JobEvent{Epoch: &e})
	}
	long := anEpoch(16)
	long.Seconds = 60
	v.tell(api.JobEvent{Epoch: &long})
	now = now.Add(6 * time.Second)
	v.tell(api.JobEvent{Progress: &api.JobProgress{Epoch: 17, Step: 3, Steps: 9}})
	const want = "Job j8 trains sage on products?[2J on beta, 20 epochs.\n" +
		"epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch\n" +
		"epoch 14 of 20: loss 0.1071, validation 79.0 %, 2.1ms an epoch\n" +
		"epoch 16 of 20, step 3 of 9 of the next: loss 0.0938, validation 79.0 %, 1m0s an epoch\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// Of nodes that share the work, it is told where the time goes and what is sent.
func TestWatchWhatIsShared(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out strings.Builder
		v := newView(&out, false)
		now := then
		v.now, v.terminal = func() time.Time { return now }, terminal
		state := sharedJobs()[1]
		state.Epoch = 1
		v.tell(api.JobEvent{State: &state})
		for n := range 3 {
			e := aSharedEpoch(n + 2)
			v.tell(api.JobEvent{Epoch: &e})
			v.tell(api.JobEvent{Progress: &api.JobProgress{Epoch: n + 3, EpochsTotal: 20, Step: 1, Steps: 1000}})
			now = now.Add(6 * time.Second)
		}
		state.Nodes = make([]string, 6)
		v.tell(api.JobEvent{State: &state})
		one := anEpoch(9)
		one.Rows.Remote = 1
		state.Nodes = []string{"beta"}
		v.tell(api.JobEvent{State: &state})
		v.tell(api.JobEvent{Epoch: &one})
		now = now.Add(6 * time.Second)
		one.Rows.Remote = 0
		v.tell(api.JobEvent{Epoch: &one})
		const phases = " (sampling 500ms, gathering 3.25s, computing 6.13s, reducing 1.5s, waiting 970.6ms), 1.3 GiB sent\n"
		want := "Job j8 trains sage on products?[2J on alpha, beta?[2J and gamma, 20 epochs.\n" +
			"epoch 3 of 20: loss 0.5000, validation 79.0 %, 12.35s an epoch" + phases +
			"epoch 4 of 20: loss 0.3750, validation 79.0 %, 12.35s an epoch" + phases +
			"Job j8 trains sage on products?[2J on 6 nodes, 20 epochs.\n" +
			"Job j8 trains sage on products?[2J on beta, 20 epochs.\n" +
			"epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch (gathering 400µs, computing 1.5ms, waiting 1.2s), 0 B sent\n"
		if !terminal {
			want += "epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch\n"
		}
		var lines strings.Builder
		for line := range strings.Lines(out.String()) {
			lines.WriteString(line[strings.LastIndex(line, "\r")+1:]) // after the bar, or what takes it away
		}
		got, bar := lines.String(), strings.Contains(out.String(), "|")
		if terminal {
			got = got[:strings.LastIndex(got, "\n")+1]
		}
		if got != want || bar != terminal {
			t.Errorf("%q, a bar: %v", got, bar)
		}
	}
}

// What is told of nodes that share the work fits on a terminal.
func TestSharedEpochsAreNotTooWide(t *testing.T) {
	for _, strategy := range []string{"leap", "p3"} {
		var out strings.Builder
		j := sharedJob()
		j.History = j.History[1:]
		for i := range j.History {
			j.History[i].Epoch = 9999
			if j.History[i].Strategy = strategy; strategy == "p3" {
				j.History[i].Bytes = api.JobBytes{Topology: 1_000_000, Gradient: 1_000_000, Activation: 1_000_000_000, Shard: 1_000_000, Control: 1_000_000}
			}
		}
		if err := errors.Join(printJob(&out, j), printSharedEpochs(&out, j.History)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > 100 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

func TestWatchOnATerminal(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	v.terminal = true
	state := someJobs()[1]
	v.tell(api.JobEvent{State: &state})
	e := anEpoch(10)
	v.tell(api.JobEvent{Epoch: &e})
	if !strings.Contains(out.String(), "epoch 10 of 20: loss 0.1500, validation 79.0 %") || !strings.Contains(out.String(), " 50%") {
		t.Errorf("%q", out.String())
	}
	v.tell(api.JobEvent{Note: "node beta does not answer"})
	if !strings.HasSuffix(out.String(), "\rNode beta does not answer.\n") {
		t.Errorf("%q", out.String())
	}
}

func TestFilesAreWhole(t *testing.T) {
	b := healthy()
	b.file = []byte(strings.Repeat("numbers ", 100_000))
	addr, dir := serve(t, b), t.TempDir()
	for _, args := range []string{
		"predict j7 --embeddings --out " + dir + "/a.NPY", "predict j7 --json --out " + dir + "/a.parquet", "export j7 --out " + dir + "/a.safetensors",
		"predict j7 --model-index 0 --out " + dir + "/b.npy", "export j7 --model-index 3 --out " + dir + "/b.safetensors",
	} {
		out, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields(args), "--addr", addr)...)
		if code != 0 || stderr != "" || !strings.Contains(out, "a.") && !strings.Contains(out, "b.") {
			t.Errorf("%s: %d %s%s", args, code, out, stderr)
		}
	}
	want := []any{
		api.PredictRequest{Format: ".npy", Embeddings: true}, api.PredictRequest{Format: ".parquet"}, api.ExportRequest{},
		api.PredictRequest{Format: ".npy", Index: new(0)}, api.ExportRequest{Index: new(3)},
	}
	if !reflect.DeepEqual(b.made, want) {
		t.Errorf("asked for %+v", b.made)
	}
	for _, name := range []string{"a.NPY", "a.parquet", "a.safetensors", "b.npy", "b.safetensors"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != string(b.file) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	// One that goes wrong midway leaves what was there before, and nothing else.
	b.err = api.Conflict("the disk of alpha is full")
	for _, args := range []string{"predict j7 --out " + dir + "/a.npy", "export j7 --out " + dir + "/a.safetensors"} {
		_, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields(args), "--addr", addr)...)
		if code != 1 || !strings.Contains(stderr, "the disk of alpha is full") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("%v %v", left, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.safetensors")); err != nil || info.Size() != int64(len(b.file)) {
		t.Errorf("%v %v", info, err)
	}
}

func TestWhatIsChangedOrForced(t *testing.T) {
	b := healthy()
	addr := serve(t, b)
	for _, args := range []string{"train resume j7", "train resume j7 --lr 0.001", "dataset remove cora", "dataset remove cora --force"} {
		if _, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields(args), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	want := []any{api.ResumeRequest{}, api.ResumeRequest{Rate: new(0.001)}, false, true}
	if !reflect.DeepEqual(b.made, want) {
		t.Errorf("asked for %+v", b.made)
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	addr, dir := serve(t, healthy()), t.TempDir()
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
		if _, stderr, code := hopmesh(t.Context(), echo(), args...); code == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}

// Who stops a job whose step takes long is told what is waited for.
func TestAStopThatTakesLongSaysSo(t *testing.T) {
	defer func(d time.Duration) { stopQuiet = d }(stopQuiet)
	b := healthy()
	b.job = sharedJob()
	addr := serve(t, b)
	for args, want := range map[string]string{
		"train stop j7":        "Waiting for alpha, beta, gamma to end the step under way: job j7 is at epoch 3 of 200, step 5 of 9.\n",
		"train stop j7 --json": "",
	} {
		b.slow, b.asked, stopQuiet = want != "", make(chan struct{}, 1), 0
		_, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields(args), "--addr", addr)...)
		if code != 0 || stderr != want {
			t.Errorf("%s: %d %q", args, code, stderr)
		}
	}
	b.slow, stopQuiet = false, time.Hour
	if _, stderr, code := hopmesh(t.Context(), echo(), "train", "stop", "j7", "--addr", addr); code != 0 || stderr != "" {
		t.Errorf("at once: %d %q", code, stderr)
	}
}
