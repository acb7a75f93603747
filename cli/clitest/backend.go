// Package clitest has what tests of commands share: a daemon that only answers, sample
// jobs, and golden files.
package clitest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/node/api"
)

// Backend is a mesh of four nodes that only answers. The fields change its answers.
type Backend struct {
	Self     api.Status
	Lines    []api.LogLine
	Empty    bool  // there are no members, tokens, datasets or jobs
	Err      error // what every call returns
	Open     bool  // streams and operations stay open
	Midway   bool  // operations fail midway instead of at once
	JobInfo  api.Job
	PlanJobs []api.JobSummary // of the plan
	File     []byte           // what predict, export and backup return
	Slow     bool             // a job stops only after it was asked for
	Asked    chan struct{}    // receives when a job is asked for; may be nil

	mu sync.Mutex
	leaving
	Unready int   // how many more times the status is not ready
	Made    []any // requests to join, force-leave, import, generate, train, resume, predict, export and back up
}

// leaving is how a daemon ends after its node has left.
type leaving struct {
	left bool   // Leave was called, without an error
	end  func() // ends the daemon; nil if none is served
}

var _ api.Backend = (*Backend)(nil)

// Then is the time in all golden files.
var Then = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// Healthy returns a backend without problems.
func Healthy() *Backend {
	return &Backend{JobInfo: Done(), Self: api.Status{Node: "alpha", Leader: "beta", Generation: 12, Ready: true, Members: 3,
		Device: "cpu", DeviceReason: "the processor was asked for", Problems: []string{}}}
}

func (b *Backend) Vitals(context.Context) ([]api.NodeVitals, error) { return nil, b.Err }

func (b *Backend) Members(context.Context) ([]api.Member, error) {
	if b.Empty || b.Err != nil {
		return nil, b.Err
	}
	return []api.Member{
		{Name: "gamma", ID: "cc00000000000003", Address: "10.0.0.3:7946", Status: "failed", Role: "voter", Device: "cuda:0", Version: "v0.1.0", Unlike: "speaks another version"},
		{Name: "alpha", ID: "aa00000000000001", Address: "10.0.0.1:7946", Status: "alive", Role: "voter", Device: "cpu", Shards: 22, Version: "v0.1.0", Numbers: &api.Numbers{Wire: "1-2", Disk: "1", Computing: "1"}},
		{Name: "delta", ID: "dd00000000000004", Status: "left", Role: "nonvoter"},
		{Name: "beta", ID: "bb00000000000002", Address: "10.0.0.2:7946", Status: "alive", Role: "leader", Device: "cpu", Shards: 21, Version: "v0.1.0\x1b[31m"},
	}, nil
}

func (b *Backend) Status(context.Context) (api.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.Self
	if b.Unready > 0 {
		b.Unready--
		s.Ready, s.Leader = false, ""
	}
	return s, b.Err
}

func (b *Backend) Plan(context.Context) (api.Plan, error) {
	if b.Empty || b.Err != nil {
		return api.Plan{}, b.Err
	}
	return api.Plan{
		Jobs: b.PlanJobs, Index: 14, Generation: 12, MeshID: "0123456789abcdef", Leader: "beta",
		Members: []api.PlanMember{
			{ID: "aa00000000000001", Name: "alpha", Role: "voter", Device: "cpu", Version: "v0.1.0", Memory: 64 << 30},
			{ID: "bb00000000000002", Name: "beta", Role: "leader", Device: "cpu", Version: "v0.1.0", Memory: 3 << 29, Leaving: true},
		},
		Gone: []api.PlanGone{{ID: "dd00000000000004", Name: "delta", Why: "revoked"}}, Tokens: 1,
		Key: api.PlanKey{Serial: 2, Rotating: true}, Digest: "5f2c",
	}, nil
}

func (b *Backend) Join(_ context.Context, r api.JoinRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Made = append(b.Made, r)
	return b.Err
}

func (b *Backend) Leave(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = b.Err == nil
	return b.Err
}

func (b *Backend) ForceLeave(_ context.Context, r api.ForceLeaveRequest) (api.ForcedOut, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Made = append(b.Made, r)
	out := api.ForcedOut{Name: r.Name, OK: true}
	if r.Revoke && r.Name == "beta" {
		out.Warning = "the node was a voter"
		return out, b.Err
	}
	if r.Revoke && !b.Empty {
		end := Then.Add(time.Hour)
		out.Tokens, out.Join, out.Expires = []string{"3f9a01c2d4e5", "4f9a01c2d4e5"}, "hopmesh agent --join 10.0.0.1:7946 --token hm1-new", &end
	}
	return out, b.Err
}

func (b *Backend) CreateToken(_ context.Context, ttl time.Duration, uses uint64) (api.Token, error) {
	b.mu.Lock()
	b.Made = append(b.Made, api.TokenRequest{TTL: ttl.String(), Uses: uses})
	b.mu.Unlock()
	t := api.Token{ID: "3f9a01c2d4e5", Token: "hm1-abc", Join: "hopmesh agent --join 10.0.0.1:7946 --join 10.0.0.2:7946 --token hm1-abc"}
	if ttl > 0 {
		end := Then.Add(ttl)
		t.Expires = &end
	}
	return t, b.Err
}

func (b *Backend) Tokens(context.Context) ([]api.TokenInfo, error) {
	if b.Empty || b.Err != nil {
		return nil, b.Err
	}
	end := Then.Add(time.Hour)
	uses, left := uint64(3), uint64(1)
	return []api.TokenInfo{
		{ID: "3f9a01c2d4e5", Created: Then, Expires: &end, Owner: "alpha", Uses: &uses, Left: &left, Used: 2, Nodes: []string{"beta", "gam\x1bma"}},
		{ID: "4f9a01c2d4e5", Created: Then},
	}, nil
}

// CA is in the middle of a succession, unless the backend is empty.
func (b *Backend) CA(context.Context) (api.CA, error) {
	ca := api.CA{Fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Key: true}
	if !b.Empty {
		ca.Serial, ca.Named, ca.Replacing, ca.Key, ca.Waiting = 2, &Then, true, false, []string{"delta", "gam\x1bma"}
	}
	return ca, b.Err
}

func (b *Backend) RotateCA(ctx context.Context) (api.CA, error) { return b.CA(ctx) }

func (b *Backend) RevokeToken(context.Context, string) error { return b.Err }

func (b *Backend) Access(context.Context) ([]api.AccessInfo, error) {
	if b.Empty || b.Err != nil {
		return nil, b.Err
	}
	end := Then.Add(time.Hour)
	return []api.AccessInfo{
		{ID: "5f9a01c2d4e5", Scope: "operate", Name: "c\x1bi", Created: Then, Expires: &end},
		{ID: "6f9a01c2d4e5", Scope: "read", Created: Then},
	}, nil
}

func (b *Backend) GrantAccess(_ context.Context, r api.AccessRequest) (api.AccessToken, error) {
	life, err := r.Life()
	t := api.AccessToken{ID: "5f9a01c2d4e5", Token: "hma1-abc", Scope: r.Scope, Name: r.Name}
	if end := Then.Add(life); life > 0 {
		t.Expires = &end
	}
	return t, cmp.Or(err, b.Err)
}

func (b *Backend) RevokeAccess(context.Context, string) error { return b.Err }

func (b *Backend) Scope(string) (string, error) { return "", b.Err }

func (b *Backend) Ready(context.Context) []api.Check { return nil }

// Events ends the daemon first if it has left, as its process would.
func (b *Backend) Events(ctx context.Context) <-chan api.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left && !b.Open && b.end != nil {
		b.end()
	}
	return Play[api.Event](ctx, nil, b.Open)
}

func (b *Backend) Logs(ctx context.Context, _ slog.Level) <-chan api.LogLine {
	return Play(ctx, b.Lines, b.Open)
}

// Play sends what there is; then the node stops, or stays.
func Play[T any](ctx context.Context, values []T, open bool) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		for _, v := range values {
			select {
			case out <- v:
			case <-ctx.Done():
				return
			}
		}
		if open {
			<-ctx.Done()
		}
	}()
	return out
}

// endsBy sets how the daemon ends.
func (b *Backend) endsBy(end func()) { b.end = end }

// Serve runs a daemon over the backend and returns its address.
func Serve(t *testing.T, b api.Backend) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(api.Handler(b, http.NotFoundHandler()))
	if err := s.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.Listener = l
	if e, is := b.(interface{ endsBy(end func()) }); is {
		e.endsBy(func() {
			s.Config.SetKeepAlivesEnabled(false)
			_ = l.Close() // a second time at the end of the test
		})
	}
	s.Start()
	t.Cleanup(s.Close)
	return "unix:" + path
}

func (b *Backend) StartJob(_ context.Context, r api.TrainRequest) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Made = append(b.Made, r)
	return "j7", b.Err
}

func (b *Backend) Jobs(context.Context) ([]api.JobSummary, error) {
	if b.Empty || b.Err != nil {
		return nil, b.Err
	}
	return Jobs(), nil
}

func (b *Backend) Job(context.Context, string) (api.Job, error) {
	select {
	case b.Asked <- struct{}{}:
	default:
	}
	return b.JobInfo, b.Err
}

func (b *Backend) RemoveJob(context.Context, string) error { return b.Err }

func (b *Backend) StopJob(ctx context.Context, _ string) error {
	if b.Slow {
		select { // until somebody has asked how far the job is
		case <-b.Asked:
		case <-ctx.Done():
		}
	}
	return b.Err
}

func (b *Backend) ResumeJob(_ context.Context, _ string, r api.ResumeRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Made = append(b.Made, r)
	return b.Err
}

func (b *Backend) WatchJob(ctx context.Context, _ string, report func(api.JobEvent)) (api.Job, error) {
	if b.Err != nil {
		return api.Job{}, b.Err
	}
	waits, runs, ends := Jobs()[2], Jobs()[1], Jobs()[0]
	report(api.JobEvent{State: &waits})
	report(api.JobEvent{Note: "job j7 waits until job j6\x1b[2J has ended"})
	report(api.JobEvent{State: &runs})
	report(api.JobEvent{Progress: &api.JobProgress{Epoch: 1, EpochsTotal: 2, Step: 3, Steps: 9}})
	first := Epoch(1)
	report(api.JobEvent{Epoch: &first})
	report(api.JobEvent{State: &ends})
	if b.Open {
		<-ctx.Done()
		return api.Job{}, ctx.Err()
	}
	return b.JobInfo, nil
}

func (b *Backend) Predict(_ context.Context, _ string, r api.PredictRequest, to io.Writer) error {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	_, err := to.Write(b.File)
	return errors.Join(b.Err, err)
}

func (b *Backend) Evaluate(_ context.Context, id string, r api.EvaluateRequest) (api.Evaluation, error) {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	name := "cora"
	if r.Dataset != "" {
		name = r.Dataset
	}
	all := func(x float64) map[string]float64 { return map[string]float64{"accuracy": x, "macro_f1": x / 2} }
	return api.Evaluation{
		ID: id, Dataset: name, Task: "class", Epoch: 1, Counts: api.SplitSizes{Val: 500, Test: 1000}, ValAccuracy: new(0.79), TestAccuracy: new(0.8125),
		Metrics: api.JobMetrics{Train: map[string]float64{}, Val: all(0.79), Test: all(0.8125)}, Metric: "accuracy", Seconds: 0.25,
	}, b.Err
}

func (b *Backend) RunScript(ctx context.Context, r api.RunRequest, tell func(api.RunEvent)) (api.RunDone, error) {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	d := api.RunDone{Run: "ab12", Nodes: []string{"n1", "n2"}}
	tell(api.RunEvent{Started: &d})
	for _, text := range []string{"epoch 1: loss 0.5", "a \x1b[31mred\x1b[0m word"} {
		tell(api.RunEvent{Node: "n1", Line: &text})
	}
	tell(api.RunEvent{Node: "n2", Note: "its daemon is gone"})
	return d, b.Err
}

// Attach implements api.Backend: nobody attaches from the command line.
func (b *Backend) Attach(context.Context, string) (api.Attachment, error) { return nil, b.Err }

func (b *Backend) ExportJob(_ context.Context, _ string, r api.ExportRequest, to io.Writer) error {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	_, err := to.Write(b.File)
	return errors.Join(b.Err, err)
}

func (b *Backend) Backup(_ context.Context, r api.BackupRequest, to io.Writer, tell func(api.Backup) error) error {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	if b.Err != nil {
		return b.Err
	}
	about := api.Backup{Mesh: "0123456789abcdef", Node: "alpha", Index: 14}
	if r.Datasets {
		about.Datasets = []string{"arxiv", "cora"}
	} else {
		about.Missing = append(about.Missing, "the shards of dataset arxiv", "the shards of dataset cora")
	}
	if r.Jobs {
		about.Jobs = []string{"j1"}
	}
	err := tell(about)
	if err == nil {
		_, err = to.Write(b.File)
	}
	return err
}

func (b *Backend) Forecast(_ context.Context, r api.ForecastRequest, tell func(api.ForecastRow)) (api.JobForecast, error) {
	b.mu.Lock()
	b.Made = append(b.Made, r)
	b.mu.Unlock()
	if b.Err != nil {
		return api.JobForecast{}, b.Err
	}
	f := api.JobForecast{Assumptions: []string{"every node is a machine like this one"}}
	for _, n := range r.Nodes {
		f.Rows = append(f.Rows, api.ForecastRow{
			Strategy: "leap", Nodes: n, Steps: 100, Bytes: epoch.Bytes{Feature: 3e9 / uint64(n), Gradient: 1e8}, Memory: 5 << 30, Seconds: 100 / float64(n),
			Parts: api.ForecastParts{Compute: 90 / float64(n), Prepare: 20 / float64(n), Hidden: 0.5, Wait: 10 / float64(n)}, Fits: true, Exact: true, Best: true,
		}, api.ForecastRow{
			Strategy: "p3", Nodes: n, Steps: 100, Bytes: epoch.Bytes{Activation: 9e9}, Once: epoch.Bytes{Shard: 7e9}, Memory: 90 << 30, Seconds: 130,
			Parts: api.ForecastParts{Compute: 50, Prepare: 20, Wait: 80, Once: 2}, Exact: true, Why: "a node needs 90.0 GiB of memory and has 64.0 GiB",
		}, api.ForecastRow{Strategy: "local", Nodes: n, Why: "it can't train this model"})
	}
	for _, row := range f.Rows {
		tell(row)
	}
	return f, nil
}

// operate reports as an import does, and ends as the backend is set up to.
func (b *Backend) operate(ctx context.Context, asked any, report func(api.DatasetEvent)) error {
	b.mu.Lock()
	b.Made = append(b.Made, asked)
	b.mu.Unlock()
	if b.Err != nil && !b.Midway {
		return b.Err
	}
	if _, verify := asked.(string); !verify {
		report(api.DatasetEvent{Forecast: &api.Forecast{
			Vertices: 2708, Edges: 10858, Partitioner: "multilevel\x1b[2J", Shards: 4, ShardBytes: 3 << 20, PeakMemory: 3 << 23, Scratch: 1 << 20, CutAtMost: 0.75, Replicas: 1,
		}})
	}
	report(api.DatasetEvent{Progress: &api.Progress{Stage: "reading edges\x1b[2J", Done: 5000, Total: 10858, Unit: "edges"}})
	report(api.DatasetEvent{Note: "the labels\x1b[2J of 3 vertices are missing"})
	report(api.DatasetEvent{Progress: &api.Progress{Stage: "cutting", Done: 3, Total: 3, Unit: "levels"}})
	if b.Open {
		<-ctx.Done()
		return ctx.Err()
	}
	return b.Err
}

func (b *Backend) ImportDataset(ctx context.Context, r api.ImportRequest, report func(api.DatasetEvent)) (api.Dataset, error) {
	return Cora(), b.operate(ctx, r, report)
}

func (b *Backend) GenerateDataset(ctx context.Context, r api.GenerateRequest, report func(api.DatasetEvent)) (api.Dataset, error) {
	return Cora(), b.operate(ctx, r, report)
}

func (b *Backend) VerifyDataset(ctx context.Context, name string, report func(api.DatasetEvent)) error {
	return b.operate(ctx, name, report)
}

func (b *Backend) Datasets(context.Context) ([]api.DatasetSummary, error) {
	if b.Empty || b.Err != nil {
		return nil, b.Err
	}
	return []api.DatasetSummary{
		{Name: "products", Stage: "placing", Vertices: 2449029, Edges: 123718280, Features: 100, Classes: 47, Shards: 64, Bytes: 3 << 29, Problems: 1},
		{Name: "cora", Stage: "ready", Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, Shards: 4, Bytes: 1 << 20},
	}, nil
}

func (b *Backend) Dataset(context.Context, string) (api.Dataset, error) {
	if b.Empty {
		return api.Dataset{Name: "cora", Stage: "importing"}, b.Err
	}
	d := Cora()
	d.Shards[2].Owner, d.Shards[2].Replicas = "", nil
	d.Problems = []string{"shard 2 is on no node that answers: start beta", "2 shards have fewer copies than wanted: add a node"}
	return d, b.Err
}

func (b *Backend) RemoveDataset(_ context.Context, _ string, force bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Made = append(b.Made, force)
	return b.Err
}
