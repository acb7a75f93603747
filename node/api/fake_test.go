package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api/secret"
)

// fake is a Backend that answers what it holds and notes what it was asked.
type fake struct {
	list      []Member
	st        Status
	pl        Plan
	infos     []TokenInfo
	authority CA
	access    []AccessInfo
	scopes    map[string]string // of tokens
	checks    []Check
	sums      []DatasetSummary
	set       Dataset
	tells     []DatasetEvent // of every operation
	job       Job
	jobs      []JobSummary
	seen      []JobEvent // by who watches
	file      []byte     // what is predicted, exported and backed up
	backup    Backup
	talk      Attachment // of who attaches
	err       error      // of every call that can fail
	// held, if not nil, is what an operation waits for once it told all.
	held chan struct{}
	// ended gets the cause for which an operation's context ended.
	ended chan error

	mu    sync.Mutex
	asked []any

	happen chan Event
	lines  chan LogLine
}

var _ Backend = (*fake)(nil)

func (f *fake) note(v any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, v)
	return f.err
}

func (f *fake) last() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return nil
	}
	return f.asked[len(f.asked)-1]
}

func (f *fake) Members(context.Context) ([]Member, error) { return f.list, f.err }
func (f *fake) Vitals(context.Context) ([]NodeVitals, error) {
	return []NodeVitals{{Name: "n1", Links: []Link{{To: "n2"}}}}, f.err
}
func (f *fake) Status(context.Context) (Status, error)      { return f.st, f.err }
func (f *fake) Plan(context.Context) (Plan, error)          { return f.pl, f.err }
func (f *fake) Tokens(context.Context) ([]TokenInfo, error) { return f.infos, f.err }
func (f *fake) Ready(context.Context) []Check               { return f.checks }
func (f *fake) Join(_ context.Context, r JoinRequest) error { return f.note(r) }
func (f *fake) Leave(context.Context) error                 { return f.note("leave") }
func (f *fake) ForceLeave(_ context.Context, r ForceLeaveRequest) (ForcedOut, error) {
	return ForcedOut{Name: r.Name, OK: true}, f.note(r)
}
func (f *fake) CA(context.Context) (CA, error)                 { return f.authority, f.err }
func (f *fake) RotateCA(context.Context) (CA, error)           { return f.authority, f.note("rotate the CA") }
func (f *fake) RevokeToken(_ context.Context, id string) error { return f.note(id) }
func (f *fake) CreateToken(_ context.Context, ttl time.Duration, uses uint64) (Token, error) {
	_ = f.note(uses)
	return Token{ID: "3f9a01c2d4e5", Token: "hm1-x", Join: "hopmesh agent --join a:1 --token hm1-x"}, f.note(ttl)
}

func (f *fake) Access(context.Context) ([]AccessInfo, error) { return f.access, f.err }
func (f *fake) GrantAccess(_ context.Context, r AccessRequest) (AccessToken, error) {
	return AccessToken{ID: "5f9a01c2d4e5", Token: "hma1-x", Scope: r.Scope, Name: r.Name}, f.note(r)
}
func (f *fake) RevokeAccess(_ context.Context, id string) error { return f.note("revoke " + id) }

// Scope knows tokens that name their scope; others have ended or never were.
func (f *fake) Scope(token string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if scope, is := f.scopes[token]; is {
		return scope, nil
	}
	return "", errNoToken
}

var errNoToken = errors.New("the token is not known here")

func (f *fake) Events(ctx context.Context) <-chan Event { return until(ctx, f.happen) }

func (f *fake) Logs(ctx context.Context, l slog.Level) <-chan LogLine {
	_ = f.note(l)
	return until(ctx, f.lines)
}

// until passes values on until ctx ends or there are no more.
func until[T any](ctx context.Context, in <-chan T) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		for {
			select {
			case v, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- v:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "up 1\n") })
}

// serve makes a daemon out of a backend, on the network that was asked for.
func serve(t *testing.T, network string, f *fake) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(checked(t, f))
	addr := s.Listener.Addr().String()
	if network == "unix" {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listener.Close(); err != nil {
			t.Fatal(err)
		}
		s.Listener, addr = l, "unix:"+path
	} else {
		t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
		lock(t, s, addr)
	}
	s.Start()
	t.Cleanup(s.Close)
	c, err := NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// lock puts a server behind a new secret, and returns that.
func lock(t *testing.T, s *httptest.Server, addr string) (key, path string) {
	t.Helper()
	key = secret.New()
	path, err := secret.Save(netip.MustParseAddrPort(addr), key)
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = Locked(s.Config.Handler, key, path)
	return key, path
}

var errBroken = errors.New("the disk is full")

func (f *fake) RunScript(_ context.Context, r RunRequest, tell func(RunEvent)) (RunDone, error) {
	d := RunDone{Run: "ab12", Nodes: []string{"n1"}}
	tell(RunEvent{Started: &d})
	tell(RunEvent{Node: "n1", Line: &r.Script})
	return d, f.note("run " + r.Name)
}

func (f *fake) Attach(_ context.Context, id string) (Attachment, error) {
	return f.talk, f.note("attach " + id)
}
