package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api/secret"
)

// On loopback everybody reads, and only who knows the secret changes something, has files
// read or written, or looks into the process.
func TestLock(t *testing.T) {
	const key, path = "0123456789abcdef", "/run/user/7/hopmesh/api-127.0.0.1:7947"
	for _, c := range []struct {
		method, path string
		open         bool
	}{
		{"GET", "/v1/members", true}, {"GET", "/v1/status", true}, {"GET", "/v1/plan", true}, {"GET", "/v1/tokens", true},
		{"GET", "/v1/jobs/j1", true}, {"GET", "/v1/datasets", true}, {"GET", "/metrics", true}, {"HEAD", "/healthz", true}, {"GET", "/readyz", true},
		{"POST", "/v1/leave", false}, {"POST", "/v1/join", false}, {"POST", "/v1/force-leave", false}, {"POST", "/v1/tokens", false},
		{"DELETE", "/v1/tokens/3f", false}, {"POST", "/v1/jobs", false}, {"POST", "/v1/jobs/j1/stop", false}, {"DELETE", "/v1/jobs/j1", false},
		{"POST", "/v1/jobs/j1/predict", false}, {"POST", "/v1/jobs/j1/export", false}, {"POST", "/v1/forecasts", false}, {"POST", "/v1/backup", false},
		{"POST", "/v1/datasets/import", false}, {"POST", "/v1/datasets/generate", false}, {"POST", "/v1/datasets/d/verify", false}, {"DELETE", "/v1/datasets/d", false},
		{"GET", "/debug/pprof/cmdline", false}, {"GET", "/debug/pprof/", false}, {"GET", "/%64ebug/pprof/cmdline", false}, {"PUT", "/v1/status", false},
	} {
		for given, opens := range map[string]bool{
			"": c.open, "Bearer ": c.open, "Bearer 0123456789abcdee": c.open, "Bearer 0123456789abcdef0": c.open, "Basic " + key: c.open,
			"Bearer " + key: true, "bearer " + key: true, key: c.open,
		} {
			f := &fake{}
			r := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
			r.Host = "localhost:7947"
			r.Header.Set("Content-Type", "application/json")
			if given != "" {
				r.Header.Set("Authorization", given)
			}
			w := httptest.NewRecorder()
			Locked(checked(t, f), key, path).ServeHTTP(w, r)
			if (w.Code == http.StatusForbidden) == opens {
				t.Errorf("%s %s with %q: %d %s", c.method, c.path, given, w.Code, w.Body)
			}
			if opens {
				continue
			}
			if f.last() != nil {
				t.Errorf("%s %s with %q: the backend was asked all the same", c.method, c.path, given)
			}
			if !strings.Contains(w.Body.String(), path) || strings.Contains(w.Body.String(), key) {
				t.Errorf("%s %s with %q: it says %s", c.method, c.path, given, w.Body)
			}
		}
	}
	// A page whose name was made to resolve to loopback gets nothing, with the secret or not.
	r := httptest.NewRequest(http.MethodGet, "/v1/status", nil)
	r.Host = "evil.example:7947"
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	Locked(checked(t, &fake{}), key, path).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("another name: %d", w.Code)
	}
}

// A client finds the secret of the daemon that runs now, and says what to do if it has none.
func TestClientsFindTheSecret(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	f := &fake{}
	s := httptest.NewUnstartedServer(checked(t, f))
	addr := s.Listener.Addr().String()
	_, path := lock(t, s, addr)
	s.Start()
	defer s.Close()
	_, port, _ := strings.Cut(addr, ":")
	for _, name := range []string{addr, "localhost:" + port} {
		c, err := NewClient(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Leave(t.Context()); err != nil || !f.was("leave") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Members(t.Context()); err != nil {
		t.Errorf("reading without the secret: %v", err)
	}
	if err := c.Leave(t.Context()); err == nil || !strings.Contains(err.Error(), "run as the user that runs the daemon") {
		t.Errorf("without the secret: %v", err)
	}
}

// A secret that a killed daemon has left in the best place does not hide the right one.
func TestAStaleSecretHidesNothing(t *testing.T) {
	run, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := httptest.NewUnstartedServer(checked(t, &fake{}))
	addr := s.Listener.Addr().String()
	t.Setenv("XDG_RUNTIME_DIR", "")
	lock(t, s, addr)
	s.Start()
	defer s.Close()
	t.Setenv("XDG_RUNTIME_DIR", run)
	if _, err := secret.Save(netip.MustParseAddrPort(addr), secret.New()); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.send(t.Context(), http.MethodPost, "/v1/leave", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}

// A program that attaches decides what is learned, though it asks by GET.
func TestAttachingIsNoReading(t *testing.T) {
	for _, path := range []string{"/v1/jobs/j1/attach", "/v1/jobs/j1/%61ttach"} {
		w := httptest.NewRecorder()
		ReadOnly(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusForbidden {
			t.Errorf("GET %s gets %d", path, w.Code)
		}
	}
}
