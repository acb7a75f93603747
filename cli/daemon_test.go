package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// backend is a mesh that never was.
type backend struct {
	status api.Status
	lines  []api.LogLine
	empty  bool
	err    error
	open   bool // whether streams and operations stay open
	midway bool // whether operations fail midway, not at once
	job    api.Job
	jobs   []api.JobSummary // of the plan
	file   []byte           // what is predicted and exported
	slow   bool             // whether a job stops only once it was asked for
	asked  chan struct{}    // takes note that a job was; may be nil

	mu      sync.Mutex
	unready int // how many more times status says so
	joined  []api.JoinRequest
	forced  []api.ForceLeaveRequest
	made    []any // import, generate and train requests
}

var _ api.Backend = (*backend)(nil)

var then = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func healthy() *backend {
	return &backend{job: done(), status: api.Status{Node: "alpha", Leader: "beta", Generation: 12, Ready: true, Members: 3,
		Device: "cpu", DeviceReason: "the processor was asked for", Problems: []string{}}}
}

func (b *backend) Members(context.Context) ([]api.Member, error) {
	if b.empty || b.err != nil {
		return nil, b.err
	}
	return []api.Member{
		{Name: "gamma", ID: "cc00000000000003", Address: "10.0.0.3:7946", Status: "failed", Role: "voter", Device: "cuda:0", Version: "v0.1.0"},
		{Name: "alpha", ID: "aa00000000000001", Address: "10.0.0.1:7946", Status: "alive", Role: "voter", Device: "cpu", Shards: 22, Version: "v0.1.0"},
		{Name: "delta", ID: "dd00000000000004", Status: "left", Role: "nonvoter"},
		{Name: "beta", ID: "bb00000000000002", Address: "10.0.0.2:7946", Status: "alive", Role: "leader", Device: "cpu", Shards: 21, Version: "v0.1.0\x1b[31m"},
	}, nil
}

func (b *backend) Status(context.Context) (api.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	if b.unready > 0 {
		b.unready--
		s.Ready, s.Leader = false, ""
	}
	return s, b.err
}

func (b *backend) Plan(context.Context) (api.Plan, error) {
	if b.empty || b.err != nil {
		return api.Plan{}, b.err
	}
	return api.Plan{
		Jobs: b.jobs, Index: 14, Generation: 12, MeshID: "0123456789abcdef", Leader: "beta",
		Members: []api.PlanMember{
			{ID: "aa00000000000001", Name: "alpha", Role: "voter", Device: "cpu", Version: "v0.1.0", Memory: 64 << 30},
			{ID: "bb00000000000002", Name: "beta", Role: "leader", Device: "cpu", Version: "v0.1.0", Memory: 3 << 29, Leaving: true},
		},
		Gone: []api.PlanGone{{ID: "dd00000000000004", Name: "delta", Why: "revoked"}}, Tokens: 1,
		Key: api.PlanKey{Serial: 2, Rotating: true}, Digest: "5f2c",
	}, nil
}

func (b *backend) Join(_ context.Context, r api.JoinRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = append(b.joined, r)
	return b.err
}

func (b *backend) Leave(context.Context) error { return b.err }

func (b *backend) ForceLeave(_ context.Context, r api.ForceLeaveRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forced = append(b.forced, r)
	return b.err
}

func (b *backend) CreateToken(_ context.Context, ttl time.Duration) (api.Token, error) {
	t := api.Token{ID: "3f9a01c2d4e5", Token: "hm1-abc", Join: "hopmesh agent --join 10.0.0.1:7946 --join 10.0.0.2:7946 --token hm1-abc"}
	if ttl > 0 {
		end := then.Add(ttl)
		t.Expires = &end
	}
	return t, b.err
}

func (b *backend) Tokens(context.Context) ([]api.TokenInfo, error) {
	if b.empty || b.err != nil {
		return nil, b.err
	}
	end := then.Add(time.Hour)
	return []api.TokenInfo{{ID: "3f9a01c2d4e5", Created: then, Expires: &end}, {ID: "4f9a01c2d4e5", Created: then}}, nil
}

func (b *backend) RevokeToken(context.Context, string) error { return b.err }
func (b *backend) Ready(context.Context) []api.Check         { return nil }

func (b *backend) Events(ctx context.Context) <-chan api.Event {
	return play[api.Event](ctx, nil, b.open)
}

func (b *backend) Logs(ctx context.Context, _ slog.Level) <-chan api.LogLine {
	return play(ctx, b.lines, b.open)
}

// play sends what there is; then the node stops, or stays.
func play[T any](ctx context.Context, values []T, open bool) <-chan T {
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

// serve runs a daemon over the backend and returns its address.
func serve(t *testing.T, b api.Backend) string {
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
	s.Start()
	t.Cleanup(s.Close)
	return "unix:" + path
}
