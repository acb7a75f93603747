package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func (f *fake) operate(ctx context.Context, asked any, tell func(DatasetEvent)) error {
	err := f.note(asked)
	for _, e := range f.tells {
		tell(e)
	}
	if f.held == nil {
		return err
	}
	select {
	case <-f.held:
		return err
	case <-ctx.Done():
		f.ended <- context.Cause(ctx)
		return ctx.Err()
	}
}

func (f *fake) ImportDataset(ctx context.Context, r ImportRequest, tell func(DatasetEvent)) (Dataset, error) {
	return f.set, f.operate(ctx, r, tell)
}

func (f *fake) GenerateDataset(ctx context.Context, r GenerateRequest, tell func(DatasetEvent)) (Dataset, error) {
	return f.set, f.operate(ctx, r, tell)
}

func (f *fake) VerifyDataset(ctx context.Context, name string, tell func(DatasetEvent)) error {
	return f.operate(ctx, "verify "+name, tell)
}

func (f *fake) Datasets(context.Context) ([]DatasetSummary, error) { return f.sums, f.err }
func (f *fake) Dataset(_ context.Context, name string) (Dataset, error) {
	return f.set, f.note("show " + name)
}
func (f *fake) RemoveDataset(_ context.Context, name string, force bool) error {
	if force {
		name += " by force"
	}
	return f.note("remove " + name)
}

func someDataset() Dataset {
	return Dataset{
		Name: "cora", Stage: "ready", Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, Splits: 1,
		SplitSizes: []SplitSizes{{Train: 140, Val: 500, Test: 1000}}, DType: "f32",
		Shards: []DatasetShard{
			{ID: 0, Vertices: 1354, Edges: 5000, Halo: 9, Bytes: 1 << 20, SHA256: "aa", Owner: "alpha", Replicas: []string{"beta"}},
			{ID: 1, Vertices: 1354, Edges: 5556, Halo: 8, Bytes: 1 << 20, SHA256: "bb", Owner: "beta", Replicas: []string{}},
		},
		EdgeCut: 100, EdgeCutShare: 0.01, Balance: 1, BalanceEdges: 1.1, BalanceTraining: 1.2, Partitioner: "multilevel", Seed: 7,
		Problems: []string{"shard 1 has too few copies"},
	}
}

func someEvents() []DatasetEvent {
	return []DatasetEvent{
		{Forecast: &Forecast{Vertices: 2708, Edges: 10556, Partitioner: "multilevel", Shards: 2, ShardBytes: 9, PeakMemory: 8, Scratch: 7, CutAtMost: 0.5, Replicas: 1}},
		{Progress: &Progress{Stage: "reading edges", Done: 3, Total: 9, Unit: "edges"}},
		{Note: "3 edges stood there twice"},
	}
}

func TestDatasetsArriveAsTheyWere(t *testing.T) {
	f := &fake{sums: []DatasetSummary{{Name: "cora", Stage: "ready", Vertices: 1, Edges: 2, Features: 3, Classes: 4, Shards: 5, Bytes: 6, Problems: 7}}, set: someDataset(), tells: someEvents()}
	replicas, inside := 0, 0.5
	options := DatasetOptions{Shards: 2, Partitioner: "stream", DType: "bf16", Replicas: &replicas, Memory: 1 << 40, Undirected: true, Seed: math.MaxUint64}
	in := ImportRequest{Name: "cora", Source: "/g/cora.npz", Format: "npz", DatasetOptions: options}
	made := GenerateRequest{Name: "big", Kind: "sbm", Vertices: 9, Edges: 10, Features: 1, Classes: 2, Communities: 3, Inside: &inside, DatasetOptions: options}
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			c, ctx := serve(t, network, f), t.Context()
			var told []DatasetEvent
			tell := func(e DatasetEvent) { told = append(told, e) }
			same(t, f.sums)(c.Datasets(ctx))
			same(t, f.set)(c.Dataset(ctx, "a/b ?"))
			same(t, f.set)(c.ImportDataset(ctx, in, tell))
			same(t, f.set)(c.GenerateDataset(ctx, made, tell))
			if err := errors.Join(c.VerifyDataset(ctx, "a/b ?", tell), c.RemoveDataset(ctx, "a/b ?", false), c.RemoveDataset(ctx, "a/b ?", true)); err != nil {
				t.Error(err)
			}
			if want := append(append(someEvents(), someEvents()...), someEvents()...); !reflect.DeepEqual(told, want) {
				t.Errorf("told %+v", told)
			}
			for _, want := range []any{"show a/b ?", in, made, "verify a/b ?", "remove a/b ?", "remove a/b ? by force"} {
				if !f.was(want) {
					t.Errorf("the backend was never asked for %+v: %+v", want, f.asked)
				}
			}
		})
	}
}

// A refusal is the same whether it comes at once or in the middle of a stream.
func TestRefusedOperations(t *testing.T) {
	for err, status := range map[error]int{Conflict("there is a cora"): http.StatusConflict, errBroken: http.StatusInternalServerError} {
		for name, tells := range map[string][]DatasetEvent{"at once": nil, "midway": someEvents()} {
			t.Run(name, func(t *testing.T) {
				c := serve(t, "unix", &fake{err: err, tells: tells})
				told := 0
				tell := func(DatasetEvent) { told++ }
				_, imported := c.ImportDataset(t.Context(), ImportRequest{Name: "a", Source: "/a"}, tell)
				for _, got := range []error{imported, c.VerifyDataset(t.Context(), "a", tell)} {
					e, ok := errors.AsType[*Error](got)
					if !ok || e.Status != status || e.Message != err.Error() {
						t.Errorf("%v arrived as %#v", err, got)
					}
				}
				if told != 2*len(tells) {
					t.Errorf("%d events", told)
				}
			})
		}
	}
	w := post(checked(t, &fake{err: Conflict("no")}), "/v1/datasets/a/verify", "")
	if w.Code != http.StatusConflict {
		t.Errorf("a refusal at once has status %d", w.Code)
	}
}

func TestHangingUpEndsTheOperation(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			f := &fake{tells: someEvents()[:1], held: make(chan struct{}), ended: make(chan error, 1)}
			c := serve(t, network, f)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the user changed their mind")
			_, err := c.ImportDataset(ctx, ImportRequest{Name: "a", Source: "/a"}, func(DatasetEvent) { cancel(why) })
			if !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
			if why := <-f.ended; why == nil {
				t.Error("the operation ended by itself")
			}
		})
	}
}

// A client that takes nothing is noticed though the connection stays.
func TestOperationEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{held: make(chan struct{}), ended: make(chan error, 1)}
		r := httptest.NewRequest(http.MethodPost, "/v1/datasets/a/verify", nil)
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		checked(t, f).ServeHTTP(deaf{httptest.NewRecorder()}, r)
		if why := <-f.ended; !errors.Is(why, errReaderGone) {
			t.Errorf("ended by %v", why)
		}
	})
}

// What lasts and says nothing repeats where it stands.
func TestOperationShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tells: someEvents()[:2], held: make(chan struct{}), ended: make(chan error, 1)}
		time.AfterFunc(10*keepAlive+time.Millisecond, func() { close(f.held) })
		w := post(checked(t, f), "/v1/datasets/a/verify", "")
		// The first tick finds that something was just told.
		if n := strings.Count(w.Body.String(), `"reading edges"`); n != 1+9 {
			t.Errorf("%d lines of progress in %s", n, w.Body)
		}
	})
}

// answerer makes answers without a network, for a bubble.
type answerer func(*http.Request) *http.Response

func (a answerer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// mute is a body that never comes, until the request ends.
type mute struct{ ctx context.Context }

func (m mute) Close() error { return nil }
func (m mute) Read([]byte) (int, error) {
	<-m.ctx.Done()
	return 0, m.ctx.Err()
}

func TestDaemonThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient("127.0.0.1:7947")
		if err != nil {
			t.Fatal(err)
		}
		c.http.Transport = answerer(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Body: mute{r.Context()}, Request: r}
		})
		begin := time.Now()
		err = c.VerifyDataset(t.Context(), "a", func(DatasetEvent) {})
		if err == nil || !strings.Contains(err.Error(), "has said nothing for 1m") || time.Since(begin) != silence {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

func TestDaemonThatGoesAwayMidway(t *testing.T) {
	for name, answer := range map[string]string{
		"at once":     "",
		"after some":  `{"progress":{"stage":"cutting"}}` + "\n",
		"in a line":   `{"progress":{"stage":"cutting"}}` + "\n" + `{"datas`,
		"other end":   `{"done":{"ok":true}}` + "\n",
		"other bytes": "hello\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, answer) }))
			defer s.Close()
			c, err := NewClient(s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.ImportDataset(t.Context(), ImportRequest{Name: "a", Source: "/a"}, func(DatasetEvent) {})
			if err == nil || strings.Contains(err.Error(), "EOF") || !strings.Contains(err.Error(), "went away before it was done") || !strings.Contains(err.Error(), "hopmesh dataset list") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestEmptyDatasetsHaveNoNull(t *testing.T) {
	f := &fake{set: Dataset{Shards: []DatasetShard{{}}}}
	h := checked(t, f)
	for path, want := range map[string][]string{
		"/v1/datasets": {"[]\n"}, "/v1/datasets/a": {`"split_sizes":[]`, `"problems":[]`, `"replicas":[]`},
	} {
		for _, want := range want {
			if w := get(h, path); !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "null") {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
	}
	w := post(h, "/v1/datasets/import", `{"name":"a","source":"/a"}`)
	if w.Code != 200 || strings.Contains(w.Body.String(), "null") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if f.set.Shards[0].Replicas != nil {
		t.Error("the backend's own dataset was changed")
	}
}

func TestWhatNoNodeIsAsked(t *testing.T) {
	half, none, wide := 0.5, 0.0, 1.5
	minus := -1
	kind := GenerateRequest{Name: "a", Kind: "sbm", Vertices: 1, Edges: 1}
	but := func(change func(*GenerateRequest)) GenerateRequest {
		r := kind
		change(&r)
		return r
	}
	source := func(o DatasetOptions) ImportRequest {
		return ImportRequest{Name: "a", Source: "/a", DatasetOptions: o}
	}
	for says, r := range map[string]interface{ Check() error }{
		"names no source":         ImportRequest{Name: "a"},
		"no absolute path":        ImportRequest{Name: "a", Source: "a.npz"},
		"\"b\" is no absolute":    ImportRequest{Name: "a", Sources: []string{"/a", "b"}},
		"is a URL":                ImportRequest{Name: "a", Sources: []string{"/a", "ftp://b/c"}},
		"in the list of sources":  ImportRequest{Name: "a", Source: "n1:/a"},
		"one source and a list":   ImportRequest{Name: "a", Source: "/a", Sources: []string{"/b"}},
		"1025 sources":            ImportRequest{Name: "a", Sources: make([]string, 1025)},
		"no format \"xls\"":       ImportRequest{Name: "a", Source: "/a", Format: "xls"},
		"labels is empty":         ImportRequest{Name: "a", Source: "/a", LabelColumns: []string{"b", ""}},
		"edges \"c\" is named":    ImportRequest{Name: "a", Source: "/a", EdgeFeatures: []string{"c", "c"}},
		"\"b\" is named twice":    ImportRequest{Name: "a", Source: "/a", LabelColumns: []string{"b", "c", "b"}},
		"more than 16384 bytes":   ImportRequest{Name: "a", Source: "/a", LabelColumns: []string{strings.Repeat("b", 16<<10)}},
		"columns of types take":   ImportRequest{Name: "a", Source: "/a", TypeColumn: strings.Repeat("b", 16<<10)},
		"of relations take more":  ImportRequest{Name: "a", Source: "/a", RelationColumn: strings.Repeat("b", 16<<10)},
		"names no dataset":        ImportRequest{Source: "/a"},
		"can't be a dataset's":    ImportRequest{Name: "../a", Source: "/a"},
		"1025 shards":             source(DatasetOptions{Shards: 1025}),
		"-1 shards":               source(DatasetOptions{Shards: -1}),
		"-1 replicas":             source(DatasetOptions{Replicas: &minus}),
		"no partitioner \"m\"":    source(DatasetOptions{Partitioner: "m"}),
		"no dtype \"f16\"":        source(DatasetOptions{DType: "f16"}),
		"a kind or a preset":      but(func(r *GenerateRequest) { r.Kind = "" }),
		"exclude each other":      but(func(r *GenerateRequest) { r.Preset = "arxiv" }),
		"only a preset":           but(func(r *GenerateRequest) { r.Scale = 2 }),
		"a preset says all":       but(func(r *GenerateRequest) { r.Kind, r.Preset = "", "arxiv" }),
		"of vertices is missing":  but(func(r *GenerateRequest) { r.Vertices = 0 }),
		"of edges is missing":     but(func(r *GenerateRequest) { r.Edges = 0 }),
		"fewer than 0":            but(func(r *GenerateRequest) { r.Classes = -1 }),
		"inside is 0":             but(func(r *GenerateRequest) { r.Inside = &none }),
		"homophily is 1.5":        but(func(r *GenerateRequest) { r.Inside, r.Homophily = &half, &wide }),
		"no kind \"er\"":          but(func(r *GenerateRequest) { r.Kind = "er" }),
		"no preset \"cora\"":      GenerateRequest{Name: "a", Preset: "cora"},
		"scale NaN is no number":  GenerateRequest{Name: "a", Preset: "arxiv", Scale: math.NaN()},
		"scale +Inf is no number": GenerateRequest{Name: "a", Preset: "arxiv", Scale: math.Inf(1)},
	} {
		err := r.Check()
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || !strings.Contains(e.Message, says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	for _, r := range []interface{ Check() error }{kind, source(DatasetOptions{}), GenerateRequest{Name: strings.Repeat("a", 64), Preset: "reddit", Scale: 0.1}} {
		if err := r.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := (GenerateRequest{Name: strings.Repeat("a", 65), Preset: "reddit"}).Check(); err == nil {
		t.Error("a name of 65 letters is accepted")
	}
}

func TestSplitSource(t *testing.T) {
	for source, want := range map[string][2]string{
		"n1:/data/part-0": {"n1", "/data/part-0"},
		"n1:/":            {"", "n1:/"},
		"s3://a/b":        {"", "s3://a/b"},
		"/n1:/data":       {"", "/n1:/data"},
		"./n1:/data":      {"", "./n1:/data"},
		"n1:data":         {"", "n1:data"},
	} {
		if node, path := SplitSource(source); [2]string{node, path} != want {
			t.Errorf("%s: %q, %q", source, node, path)
		}
	}
}
