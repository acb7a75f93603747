package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

var networks = []string{"tcp", "unix"}

func TestAnswersArriveAsTheyWere(t *testing.T) {
	when := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	three := uint64(3)
	f := &fake{
		list:  []Member{{Name: "alpha", ID: "00ff", Address: "10.0.0.1:7946", Status: "alive", Role: "leader", Device: "cpu", Shards: 3, Version: "1"}},
		st:    Status{Node: "alpha", Leader: "alpha", Generation: 7, Ready: true, Members: 1, Jobs: 2, Training: []JobSummary{someSummary("running")}, Problems: []string{"beta is away"}},
		pl:    Plan{Index: 9, Generation: 7, MeshID: "aa", Leader: "alpha", Members: []PlanMember{{ID: "00ff", Memory: 1 << 40, Leaving: true}}, Gone: []PlanGone{{ID: "01", Name: "b", Why: "left"}}, Jobs: []JobSummary{someSummary("done")}, Tokens: 1, Key: PlanKey{Serial: 2, Rotating: true}, Digest: "d"},
		infos: []TokenInfo{{ID: "3f", Created: when, Expires: &when, Owner: "a", Uses: &three, Left: &three, Nodes: []string{"b"}}, {ID: "4f", Created: when, Nodes: []string{}}},
	}
	f.authority = CA{Serial: 2, Fingerprint: "9f", Named: &when, Key: true, Replacing: true, Waiting: []string{"b"}}
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			c, ctx := serve(t, network, f), t.Context()
			same(t, f.authority)(c.CA(ctx))
			same(t, f.list)(c.Members(ctx))
			same(t, f.st)(c.Status(ctx))
			same(t, f.pl)(c.Plan(ctx))
			same(t, f.infos)(c.Tokens(ctx))
		})
	}
}

func same[T any](t *testing.T, want T) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
}

func TestChangesReachTheBackend(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			f := &fake{}
			c, ctx := serve(t, network, f), t.Context()
			join := JoinRequest{Peers: []string{"a:1", "b:2"}, Token: "hm1-x"}
			force := ForceLeaveRequest{Name: "beta", Revoke: true}
			for _, step := range []struct {
				err  error
				want any
			}{
				{c.Join(ctx, join), join},
				{c.Leave(ctx), "leave"},
				{second(c.ForceLeave(ctx, force)), force},
				{c.RevokeToken(ctx, "a/b ?"), "a/b ?"},
				{second(c.RotateCA(ctx)), "rotate the CA"},
			} {
				if step.err != nil {
					t.Errorf("%v: %v", step.want, step.err)
				}
				if !f.was(step.want) {
					t.Errorf("the backend was never asked for %v: %v", step.want, f.asked)
				}
			}
			for _, ttl := range []time.Duration{0, 90 * time.Minute} {
				tok, err := c.CreateToken(ctx, ttl, 3)
				if err != nil || tok.Token != "hm1-x" || tok.Expires != nil {
					t.Errorf("%+v, %v", tok, err)
				}
				if f.last() != ttl || !f.was(uint64(3)) {
					t.Errorf("asked for a token of %v, the backend for one of %v", ttl, f.last())
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func (f *fake) was(want any) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if reflect.DeepEqual(a, want) {
			return true
		}
	}
	return false
}

func TestRefusalsKeepStatusAndSentence(t *testing.T) {
	for err, status := range map[error]int{
		Invalid("no %s", "such"):  http.StatusBadRequest,
		NotFound("no %s", "such"): http.StatusNotFound,
		Conflict("no %s", "such"): http.StatusConflict,
		Unavailable("no such"):    http.StatusServiceUnavailable,
		errBroken:                 http.StatusInternalServerError,
	} {
		f := &fake{err: err}
		c := serve(t, "unix", f)
		_, got := c.Status(t.Context())
		for _, got := range []error{got, c.Leave(t.Context())} {
			e, ok := errors.AsType[*Error](got)
			if !ok || e.Status != status || e.Message != err.Error() {
				t.Errorf("%v arrived as %#v", err, got)
			}
		}
	}
}

func TestEventsAndLogs(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			f := &fake{happen: make(chan Event), lines: make(chan LogLine, 2)}
			c := serve(t, network, f)
			f.lines <- LogLine{Level: "WARN", Message: "one", Attrs: map[string]string{"peer": "beta"}}
			f.lines <- LogLine{Message: "two"}
			close(f.lines)
			var got []string
			for l, err := range c.Logs(t.Context(), slog.LevelDebug) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, l.Message+l.Attrs["peer"])
			}
			if want := []string{"onebeta", "two"}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if f.last() != slog.LevelDebug {
				t.Errorf("asked for %v", f.last())
			}
			// An event arrives while the stream is open, and ending the context ends it.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { f.happen <- Event{Type: "leader", Generation: 4} }()
			count := 0
			for e, err := range c.Events(ctx) {
				if err != nil || e.Type != "leader" || e.Generation != 4 {
					t.Errorf("%+v, %v", e, err)
				}
				count++
				cancel()
			}
			if count != 1 {
				t.Errorf("%d events", count)
			}
		})
	}
}

func TestStreamThatIsNotGranted(t *testing.T) {
	c, err := NewClient("unix:" + t.TempDir() + "/none")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, err := range c.Events(t.Context()) {
		count++
		if !errors.Is(err, ErrNoDaemon) {
			t.Errorf("got %v", err)
		}
	}
	if count != 1 {
		t.Errorf("%d errors", count)
	}
}

func TestEmptyListsAreNotNull(t *testing.T) {
	h := checked(t, &fake{})
	for path, want := range map[string]string{
		"/v1/members": "[]", "/v1/tokens": "[]", "/v1/status": `"problems":[]`, "/v1/plan": `"members":[],"gone":[]`,
	} {
		if w := get(h, path); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}
