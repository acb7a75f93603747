package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (f *fake) StartJob(_ context.Context, r TrainRequest) (string, error) { return "j7", f.note(r) }
func (f *fake) Jobs(context.Context) ([]JobSummary, error)                 { return f.jobs, f.err }
func (f *fake) Job(_ context.Context, id string) (Job, error)              { return f.job, f.note("show " + id) }
func (f *fake) StopJob(_ context.Context, id string) error                 { return f.note("stop " + id) }
func (f *fake) RemoveJob(_ context.Context, id string) error               { return f.note("remove " + id) }

func (f *fake) ResumeJob(_ context.Context, id string, r ResumeRequest) error {
	if r.Rate != nil {
		id += fmt.Sprintf(" at %g", *r.Rate)
	}
	return f.note("resume " + id)
}

func (f *fake) WatchJob(ctx context.Context, id string, tell func(JobEvent)) (Job, error) {
	err := f.note("watch " + id)
	for _, e := range f.seen {
		tell(e)
	}
	if f.held != nil {
		select {
		case <-f.held:
		case <-ctx.Done():
			f.ended <- context.Cause(ctx)
			return Job{}, ctx.Err()
		}
	}
	return f.job, err
}

// Predict writes all of the file before it fails.
func (f *fake) Predict(_ context.Context, id string, r PredictRequest, to io.Writer) error {
	_, err := to.Write(f.file)
	return errors.Join(f.note(fmt.Sprintf("predict %s %s %v %d", id, r.Format, r.Embeddings, *cmp.Or(r.Index, new(-1)))), err)
}

func (f *fake) Evaluate(_ context.Context, id string, r EvaluateRequest) (Evaluation, error) {
	half := 0.5
	return Evaluation{ID: id, Dataset: r.Dataset, TestAccuracy: &half, Metrics: JobMetrics{Test: map[string]float64{"accuracy": half}}},
		f.note(fmt.Sprintf("evaluate %s on %q %d", id, r.Dataset, *cmp.Or(r.Index, new(-1))))
}

func (f *fake) Forecast(_ context.Context, r ForecastRequest, tell func(ForecastRow)) (JobForecast, error) {
	err := f.note(r)
	rows := []ForecastRow{{Strategy: "leap", Nodes: r.Nodes[0], Fits: true}, {Strategy: "p3", Nodes: r.Nodes[0]}}
	for _, row := range rows {
		tell(row)
	}
	return JobForecast{Rows: rows}, err
}

func (f *fake) Backup(_ context.Context, r BackupRequest, to io.Writer, tell func(Backup) error) error {
	if err := f.note(r); err != nil {
		return err
	}
	err := tell(f.backup)
	if err == nil {
		_, err = to.Write(f.file)
	}
	return err
}

func (f *fake) ExportJob(_ context.Context, id string, r ExportRequest, to io.Writer) error {
	if r.Index != nil {
		id += fmt.Sprintf(" model %d", *r.Index)
	}
	_, err := to.Write(f.file)
	return errors.Join(f.note("export "+id), err)
}

func someEpoch(n int) JobEpoch {
	half := 0.5
	return JobEpoch{
		Epoch: n, Loss: 1.25, TrainAccuracy: &half, ValAccuracy: &half, TestAccuracy: &half, Seconds: 0.25, Phases: JobPhases{Compute: 0.125},
		Rows: JobRows{Local: 7, Remote: 8}, Requests: JobRequests{Feature: 1, Topology: 2}, Bytes: JobBytes{Feature: 1, Topology: 2, Model: 3, Gradient: 4, Activation: 5, Shard: 6, Control: 7},
		Eval: &JobEval{Seconds: 0.5, Bytes: JobBytes{Feature: 7, Topology: 6, Model: 5, Gradient: 4, Activation: 3, Shard: 2, Control: 1}}, Generation: 9, Weights: strings.Repeat("ab", 32),
		Strategy: "leap", Why: "models are smaller than features", Slots: 3,
	}
}

func someJob() Job {
	half := 0.5
	return Job{
		ID: "j7", State: "done", Dataset: "cora", Model: "gcn", Strategy: "single", Why: "one node", Seed: 3, Generation: 9, Nodes: []string{"alpha"}, Devices: []string{"cuda:0"},
		EpochsTotal: 2, Epoch: 2, Best: &JobBest{Epoch: 1, ValAccuracy: &half, TestAccuracy: &half}, History: []JobEpoch{someEpoch(1), someEpoch(2)},
		Models: []JobModel{}, Recipe: json.RawMessage(`{"epochs":2}`), Problems: []string{}, Notes: []string{"it was cold"},
	}
}

func someSummary(state string) JobSummary {
	return JobSummary{ID: "j7", State: state, Dataset: "cora", Model: "gcn", Strategy: "single", Epoch: 1, EpochsTotal: 2, Nodes: []string{"alpha", "beta"}, Owners: []int{0, 1, 1}}
}

func someSights() []JobEvent {
	s, e := someSummary("running"), someEpoch(1)
	return []JobEvent{{State: &s}, {Note: "it is cold"}, {Progress: &JobProgress{Epoch: 2, EpochsTotal: 2, Step: 1, Steps: 3}}, {Epoch: &e}}
}

func TestJobsArriveAsTheyWere(t *testing.T) {
	f := &fake{job: someJob(), jobs: []JobSummary{someSummary("done")}, seen: someSights(), file: bytes.Repeat([]byte("row "), 50_000)}
	two, rate, yes, seed := 2, 0.01, true, uint64(1<<64-1)
	in := TrainRequest{
		Dataset: "cora", Model: "sage", Layers: &two, Hidden: &two, Heads: &two, Dropout: &rate, Norm: "layer", Residual: &yes, Optimizer: "sgd",
		Rate: &rate, WeightDecay: &rate, Epochs: &two, Batch: &two, Fanout: []int{25, 10}, Features: "row", Patience: &two, EvalEvery: &two,
		Split: &two, Seed: &seed, Strategy: "auto", Deterministic: true, Set: []Setting{{"sage.aggregator", "max"}}, Sweep: []Sweep{{"train.factor", []string{"0.5", "0.25"}}, {"train.least_lr", []string{"0", "1e-3"}}},
	}
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			c, ctx := serve(t, network, f), t.Context()
			var told []JobEvent
			same(t, JobID{"j7"})(c.StartJob(ctx, in))
			same(t, f.jobs)(c.Jobs(ctx))
			same(t, f.job)(c.Job(ctx, "a/b ?"))
			same(t, f.job)(c.WatchJob(ctx, "a/b ?", func(e JobEvent) { told = append(told, e) }))
			if !reflect.DeepEqual(told, someSights()) {
				t.Errorf("told %+v", told)
			}
			if err := errors.Join(c.StopJob(ctx, "j7"), c.ResumeJob(ctx, "j7", ResumeRequest{}), c.ResumeJob(ctx, "j8", ResumeRequest{Rate: &rate}), c.RemoveJob(ctx, "a/b ?")); err != nil {
				t.Error(err)
			}
			var predicted, exported bytes.Buffer
			ask := PredictRequest{Format: ".npy", Embeddings: true, Index: &two}
			if err := errors.Join(c.Predict(ctx, "j7", ask, &predicted), c.ExportJob(ctx, "j7", ExportRequest{Index: &two}, &exported)); err != nil {
				t.Error(err)
			}
			if e, err := c.Evaluate(ctx, "j7", EvaluateRequest{Dataset: "b", Index: &two}); err != nil || e.ID != "j7" || e.Dataset != "b" || e.TestAccuracy == nil || e.Metrics.Test["accuracy"] != 0.5 {
				t.Errorf("%+v, %v", e, err)
			}
			if !bytes.Equal(predicted.Bytes(), f.file) || !bytes.Equal(exported.Bytes(), f.file) {
				t.Errorf("%d and %d bytes of %d", predicted.Len(), exported.Len(), len(f.file))
			}
			for _, want := range []any{in, "show a/b ?", "watch a/b ?", "stop j7", "resume j7", "resume j8 at 0.01", "remove a/b ?", "predict j7 .npy true 2", `evaluate j7 on "b" 2`, "export j7 model 2"} {
				if !f.was(want) {
					t.Errorf("the backend was never asked for %+v: %+v", want, f.asked)
				}
			}
		})
	}
}

// A file of no bytes is one, too.
func TestEmptyFile(t *testing.T) {
	c := serve(t, "unix", &fake{})
	if err := c.ExportJob(t.Context(), "j7", ExportRequest{}, io.Discard); err != nil {
		t.Error(err)
	}
}

// What goes wrong is the same sentence whether some of the file was sent or none.
func TestRefusedFiles(t *testing.T) {
	for name, size := range map[string]int{"at once": 0, "in the buffer": 9, "midway": 3 * delivered} {
		for err, status := range map[error]int{Conflict("the model is on n2:\n%s", "100 % über"): http.StatusConflict, errBroken: http.StatusInternalServerError} {
			t.Run(name, func(t *testing.T) {
				c := serve(t, "tcp", &fake{err: err, file: make([]byte, size)})
				got := c.Predict(t.Context(), "j7", PredictRequest{Format: ".npy"}, io.Discard)
				e, ok := errors.AsType[*Error](got)
				if !ok || e.Status != status || e.Message != err.Error() {
					t.Errorf("%v arrived as %#v", err, got)
				}
			})
		}
	}
}

func TestFileThatIsCutOff(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"without a word": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("some")) },
		"in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("some"))
		},
		"with nonsense": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", trailerError)
			_, _ = w.Write([]byte("some"))
			w.Header().Set(trailerError, "x%zz")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handler)
			defer s.Close()
			c, err := NewClient(s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.ExportJob(t.Context(), "j7", ExportRequest{}, io.Discard); err == nil || !strings.Contains(err.Error(), "went away before the file was whole") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A daemon that ends before it answers is told of as one that went away.
func TestDaemonGoesAway(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	c, err := NewClient(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Predict(t.Context(), "j7", PredictRequest{Format: ".npy"}, io.Discard)
	if !errors.Is(err, ErrGone) || strings.Contains(err.Error(), "EOF") || !strings.Contains(err.Error(), "went away before it had answered") {
		t.Errorf("%v", err)
	}
}

// Who resumes a job as it was need not send anything.
func TestResumeWithoutABody(t *testing.T) {
	f := &fake{}
	if w := post(checked(t, f), "/v1/jobs/j7/resume", ""); w.Code != http.StatusOK || f.last() != "resume j7" {
		t.Errorf("%d %s, asked for %v", w.Code, w.Body, f.last())
	}
}

func TestHangingUpEndsTheWatching(t *testing.T) {
	f := &fake{seen: someSights()[:1], held: make(chan struct{}), ended: make(chan error, 1)}
	c := serve(t, "unix", f)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user has seen enough")
	if _, err := c.WatchJob(ctx, "j7", func(JobEvent) { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if why := <-f.ended; why == nil {
		t.Error("it ended by itself")
	}
}

// A job that has nothing to tell for long is still watched.
func TestWatchShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{seen: someSights()[:1], held: make(chan struct{}), ended: make(chan error, 1), job: someJob()}
		time.AfterFunc(10*keepAlive+time.Millisecond, func() { close(f.held) })
		w := get(checked(t, f), "/v1/jobs/j7/watch")
		if n := strings.Count(w.Body.String(), "\n"); n != 1+9+1 || !strings.Contains(w.Body.String(), `"end"`) {
			t.Errorf("%d lines in %s", n, w.Body)
		}
	})
}

func TestWatchThatIsRefused(t *testing.T) {
	for name, seen := range map[string][]JobEvent{"at once": nil, "midway": someSights()} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, "unix", &fake{err: NotFound("no job"), seen: seen})
			_, err := c.WatchJob(t.Context(), "j9", func(JobEvent) {})
			if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
				t.Errorf("%v", err)
			}
		})
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, `{"note":"x"}`) }))
	defer s.Close()
	c, err := NewClient(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.WatchJob(t.Context(), "j9", func(JobEvent) {}); err == nil || !strings.Contains(err.Error(), "hopmesh train list") {
		t.Errorf("%v", err)
	}
}

func TestEmptyJobsHaveNoNull(t *testing.T) {
	half := 0.5
	best := JobBest{ValAccuracy: &half, TestAccuracy: &half}
	f := &fake{job: Job{Recipe: json.RawMessage("{}"), Best: &best}, jobs: []JobSummary{{Best: &best}}, seen: []JobEvent{{State: &JobSummary{Best: &best}}}}
	f.st.Training, f.pl.Jobs = f.jobs, f.jobs
	h := checked(t, f)
	for path, want := range map[string][]string{
		"/v1/jobs": {`"nodes":[]`}, "/v1/jobs/j7": {`"nodes":[]`, `"history":[]`, `"models":[]`, `"problems":[]`, `"notes":[]`},
		"/v1/jobs/j7/watch": {`"nodes":[]`, `"history":[]`}, "/v1/status": {`"nodes":[]`}, "/v1/plan": {`"nodes":[]`},
	} {
		for _, want := range want {
			if w := get(h, path); !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "null") {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
	}
	if f.jobs[0].Nodes != nil || f.seen[0].State.Nodes != nil {
		t.Error("the backend's own lists were changed")
	}
}

func TestJobsThatNoNodeIsAsked(t *testing.T) {
	many := maxEpochs + 1
	nan, inf, less := math.NaN(), math.Inf(-1), -1.0
	for says, r := range map[string]interface{ Check() error }{
		"names no dataset":         TrainRequest{},
		"no model \"mlpp\"":        TrainRequest{Dataset: "a", Model: "mlpp"},
		"no optimizer \"lion\"":    TrainRequest{Dataset: "a", Optimizer: "lion"},
		"no norm \"batch\"":        TrainRequest{Dataset: "a", Norm: "batch"},
		"normalise features \"x\"": TrainRequest{Dataset: "a", Features: "x"},
		"10001 epochs":             TrainRequest{Dataset: "a", Epochs: &many},
		"300 settings":             TrainRequest{Dataset: "a", Set: make([]Setting, 300)},
		"--lr is NaN, which":       TrainRequest{Dataset: "a", Rate: &nan},
		"--lr is -1: give":         TrainRequest{Dataset: "a", Rate: &less},
		"(lr=-1): --lr is -1":      TrainRequest{Dataset: "a", Sweep: []Sweep{{"lr", []string{"0.1", "-1"}}}},
		"--dropout is -1, but":     TrainRequest{Dataset: "a", Dropout: &less},
		"--weight-decay is -1":     TrainRequest{Dataset: "a", WeightDecay: &less},
		"--hidden is 0, but":       TrainRequest{Dataset: "a", Hidden: new(0)},
		"--epochs is 0, but":       TrainRequest{Dataset: "a", Epochs: new(0)},
		"--split is -1, but":       TrainRequest{Dataset: "a", Split: new(-1)},
		"--dropout is -Inf, which": TrainRequest{Dataset: "a", Dropout: &inf},
		"--weight-decay is NaN":    TrainRequest{Dataset: "a", WeightDecay: &nan},
		"--edge-split has 2 sha":   TrainRequest{Dataset: "a", Task: "link", EdgeSplit: []float64{0.9, 0.1}},
		"--edge-split is for":      TrainRequest{Dataset: "a", EdgeSplit: []float64{0.8, 0.1, 0.1}},
		"is for --task link: give": TrainRequest{Dataset: "a", Task: "class", From: "j1", EdgeSplit: []float64{0.8, 0.1, 0.1}},
		"--edge-split is NaN":      TrainRequest{Dataset: "a", Task: "link", EdgeSplit: []float64{0.8, nan, 0.1}},
		"--set a.b is +Inf":        TrainRequest{Dataset: "a", Set: []Setting{{"a.c", "mean"}, {"a.b", "infinity"}}},
		"--lr is NaN":              ResumeRequest{Rate: &nan},
		"--lr is -1":               ResumeRequest{Rate: &less},
		"names no format":          PredictRequest{},
		"of predictions \".csv\"":  PredictRequest{Format: ".csv"},
		"of pairs \".xls\"":        PredictRequest{Format: ".xls", PairOptions: PairOptions{Top: 1}},
		"--pairs scores given":     PredictRequest{Format: ".csv", PairOptions: PairOptions{Top: 1, Pairs: "/a.csv"}},
		"--top is -1":              PredictRequest{Format: ".csv", PairOptions: PairOptions{Top: -1}},
		"--top is 65537":           PredictRequest{Format: ".csv", PairOptions: PairOptions{Top: 65537}},
		"--vertices says":          PredictRequest{Format: ".npy", PairOptions: PairOptions{Vertices: "/a.csv"}},
		"--neighbours says":        PredictRequest{Format: ".csv", PairOptions: PairOptions{Pairs: "/a.csv", Neighbours: true}},
		"--relation says":          PredictRequest{Format: ".csv", PairOptions: PairOptions{Relation: "likes"}},
		"--embeddings writes":      PredictRequest{Format: ".csv", Embeddings: true, PairOptions: PairOptions{Top: 1}},
		"--task is class, and":     PredictRequest{Format: ".csv", PairOptions: PairOptions{Top: 1, Task: "class"}},
		"no task \"links\"":        PredictRequest{Format: ".npy", PairOptions: PairOptions{Task: "links"}},
		"can't say who":            PredictRequest{Format: ".npy", PairOptions: PairOptions{Top: 1}},
		"--pairs is \"a.csv\"":     PredictRequest{Format: ".npy", PairOptions: PairOptions{Pairs: "a.csv"}},
		"--vertices is \"ftp://b":  PredictRequest{Format: ".csv", PairOptions: PairOptions{Top: 3, Vertices: "ftp://b/c.csv"}},
	} {
		err := r.Check()
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || !strings.Contains(e.Message, says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if err := (TrainRequest{Dataset: "a", From: "j1", EdgeSplit: []float64{0.8, 0.1, 0.1}}).Check(); err != nil {
		t.Errorf("a job that may learn links as its source: %v", err)
	}
	for _, r := range []PredictRequest{
		{Format: ".npy", PairOptions: PairOptions{Pairs: "/a.csv"}}, {Format: ".json", PairOptions: PairOptions{Top: MaxTop, Neighbours: true, Task: "link"}},
		{Format: ".tsv", PairOptions: PairOptions{Top: 1, Vertices: "https://b/c.csv"}}, {Format: ".npy", PairOptions: PairOptions{Task: "link"}},
	} {
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	h := checked(t, &fake{})
	for path, body := range map[string]string{"/v1/jobs": `{"dataset":"a","epocs":3}`, "/v1/jobs/j7/resume": `{"lr":0}`, "/v1/jobs/j7/predict": `{"format":".csv"}`, "/v1/jobs/j7/evaluate": `{"split":-1}`} {
		if w := post(h, path, body); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Each count has its place, also where it is 0.
func TestEpochsHaveAllCounts(t *testing.T) {
	b, err := json.Marshal(JobEpoch{Eval: &JobEval{}})
	if err != nil {
		t.Fatal(err)
	}
	const bytes = `"bytes":{"feature":0,"topology":0,"model":0,"gradient":0,"activation":0,"shard":0,"control":0}`
	for _, want := range []string{
		`"phases":{"sample":0,"gather":0,"compute":0,"reduce":0,"wait":0}`, `"rows":{"local":0,"remote":0}`,
		`"requests":{"feature":0,"topology":0},` + bytes, `"eval":{"seconds":0,` + bytes + "}",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	if strings.Contains(string(b), "slots") {
		t.Errorf("slots where no models travel: %s", b)
	}
}
