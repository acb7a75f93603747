package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api/secret"
)

// ask makes one request and returns its status.
func ask(t *testing.T, network, addr, method, key string) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// On loopback changes need the secret that lies in the user's runtime directory while the
// address is served; on the socket they need none; elsewhere nothing is served but health.
func TestSecretsOfLoopback(t *testing.T) {
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	answer := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	dir, err := os.MkdirTemp("", "hm") //nolint:usetesting // its path would be too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg := Config{
		Socket: filepath.Join(dir, "s"), Addresses: []string{"127.0.0.1:0", "0.0.0.0:0"},
		Full: answer(http.StatusOK), Public: answer(http.StatusTeapot), Log: slog.New(slog.DiscardHandler),
	}
	open, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, len(open))
	for _, l := range open {
		go func() { done <- l.Serve(ctx) }()
	}
	local := open[1].Addr().String()
	_, port, _ := net.SplitHostPort(open[2].Addr().String())
	keys, _ := secret.Find(local)
	key := strings.Join(keys, " ")
	if key == "" {
		t.Fatal("no secret was left")
	}
	for _, c := range []struct {
		network, addr, method, key string
		want                       int
	}{
		{"unix", cfg.Socket, "POST", "", 200}, {"unix", cfg.Socket, "GET", "", 200},
		{"tcp", local, "GET", "", 200}, {"tcp", local, "POST", "", 403}, {"tcp", local, "POST", secret.New(), 403}, {"tcp", local, "POST", key, 200},
		{"tcp", "127.0.0.1:" + port, "POST", key, 418}, {"tcp", "127.0.0.1:" + port, "GET", "", 418},
	} {
		if got := ask(t, c.network, c.addr, c.method, c.key); got != c.want {
			t.Errorf("%s to %s: %d, not %d", c.method, c.addr, got, c.want)
		}
	}
	stop()
	for range open {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(run, "hopmesh"))
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// Without a place for the secret, as if another user had taken it, the address is for reading
// only.
func TestNoPlaceForASecret(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if err := os.WriteFile(filepath.Join(temp, fmt.Sprintf("hopmesh-%d", os.Geteuid())), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	open, err := Open(Config{Socket: filepath.Join(temp, "s"), Addresses: []string{"127.0.0.1:0"}, Full: full, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range open {
		defer l.Close()
	}
	for method, want := range map[string]int{"GET": http.StatusOK, "POST": http.StatusForbidden} {
		w := httptest.NewRecorder()
		open[1].handler.ServeHTTP(w, httptest.NewRequest(method, "/v1/leave", nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

func TestAddressesOfAnotherScheme(t *testing.T) {
	for _, addr := range []string{"http://127.0.0.1:0", "https://http://127.0.0.1:0", "HTTPS://127.0.0.1:0"} {
		_, err := Open(Config{Socket: filepath.Join(t.TempDir(), "s"), Addresses: []string{addr}, Full: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "give HOST:PORT, https://HOST:PORT or unix:PATH") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
