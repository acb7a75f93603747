package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/api/pin"
)

// remote serves a handler at https://127.0.0.1:PORT, and returns HOST:PORT.
func remote(t *testing.T, tlsFor func() (*tls.Config, error), h http.Handler) string {
	t.Helper()
	opened, err := Open(Config{
		Socket: filepath.Join(t.TempDir(), "s"), Addresses: []string{"https://127.0.0.1:0"}, Full: http.NotFoundHandler(), Public: http.NotFoundHandler(),
		Remote: h, TLS: tlsFor, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, len(opened))
	for _, l := range opened {
		go func() { done <- l.Serve(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range opened {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return opened[1].Addr().String()
}

func founded(t *testing.T) *identity.Identity {
	t.Helper()
	id, err := identity.Found(filepath.Join(t.TempDir(), "identity"), "alpha", identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestOverTLS(t *testing.T) {
	mesh, foreign := founded(t), founded(t)
	token, err := identity.NewAPIToken(mesh.CAHash())
	if err != nil {
		t.Fatal(err)
	}
	other, err := identity.NewAPIToken(foreign.CAHash())
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 8)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || r.TLS.Version != tls.VersionTLS13 {
			t.Errorf("served over %+v", r.TLS)
		}
		shown <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"node":"alpha","problems":[]}`)
	})
	addr := remote(t, func() (*tls.Config, error) { return mesh.APITLS(), nil }, h)
	status := func(at, with string) error {
		c, err := api.NewTLSClient("https://"+at, with)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := c.Status(t.Context())
		if err == nil && s.Node != "alpha" {
			t.Errorf("it answers %+v", s)
		}
		return err
	}
	if err := status(addr, token.String()); err != nil {
		t.Fatal(err)
	}
	if got := <-shown; got != "Bearer "+token.String() {
		t.Errorf("it was shown %q", got)
	}
	// A client of another mesh shows nothing.
	if err := status(addr, other.String()); err == nil || !strings.Contains(err.Error(), "not of the mesh that the token is of") {
		t.Errorf("another mesh: %v", err)
	}
	// Nor is anything shown where there is no TLS, and the other way round a sentence says what to do.
	plain := remotePlain(t)
	if err := status(plain, token.String()); err == nil || !strings.Contains(err.Error(), "no TLS is spoken") {
		t.Errorf("plain: %v", err)
	}
	c, err := api.NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "over TLS there: give --addr https://"+addr) {
		t.Errorf("plain HTTP to TLS: %v", err)
	}
	waits := make(chan struct{})
	outside := remote(t, func() (*tls.Config, error) { defer close(waits); return nil, errors.New("in no mesh") }, h)
	if err := status(outside, token.String()); err == nil || !strings.Contains(err.Error(), "in no mesh") {
		t.Errorf("in no mesh: %v", err)
	}
	<-waits
	if len(shown) != 0 {
		t.Errorf("a token was shown: %q", <-shown)
	}
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if conn, err := d.DialContext(ctx, "tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 is spoken")
	}
}

// remotePlain serves plain HTTP on loopback.
func remotePlain(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was asked for %s", r.URL) })
	opened, err := Open(Config{Socket: filepath.Join(t.TempDir(), "s"), Addresses: []string{"127.0.0.1:0"}, Full: h, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, len(opened))
	for _, l := range opened {
		go func() { done <- l.Serve(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range opened {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return opened[1].Addr().String()
}

// Clients read tokens and judge chains as package identity does, also while one authority succeeds
// another.
func TestPinsAreThoseOfTheIdentity(t *testing.T) {
	mesh := founded(t)
	token, err := identity.NewAPIToken(mesh.CAHash())
	if err != nil {
		t.Fatal(err)
	}
	got, sent, err := pin.Authority(" " + strings.ToUpper(token.String()) + "\n")
	if err != nil || got != mesh.CAHash() || sent != token.String() {
		t.Errorf("%x as %s, %v", got, sent, err)
	}
	whole := token.String()
	for n := range whole {
		for _, c := range []string{"a", "b", "2", "1", "-"} {
			wrong := whole[:n] + c + whole[n+1:]
			_, theirs := identity.ParseAPIToken(wrong)
			if _, _, ours := pin.Authority(wrong); (ours == nil) != (theirs == nil) && wrong != whole {
				// The last character has bits that no byte takes, which only the node looks at.
				if n != len(whole)-1 {
					t.Errorf("character %d as %s: %v, and by the node %v", n, c, ours, theirs)
				}
			}
		}
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"problems":[]}`)
	})
	addr := remote(t, func() (*tls.Config, error) { return mesh.APITLS(), nil }, answer)
	status := func(with identity.APIToken) error {
		c, err := api.NewTLSClient("https://"+addr, with.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Status(t.Context())
		return err
	}
	next, key, err := mesh.NewSuccessor(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := mesh.HoldNextCAKey(key); err != nil {
		t.Fatal(err)
	}
	if _, err := mesh.Succeed(next); err != nil {
		t.Fatal(err)
	}
	renewal, err := mesh.Renew()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := mesh.Sign(renewal.CSR(), mesh.ID(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := renewal.Adopt(chain); err != nil {
		t.Fatal(err)
	}
	young, err := identity.NewAPIToken(mesh.CAHash())
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]identity.APIToken{"the former": token, "the new": young} {
		if err := status(with); err != nil {
			t.Errorf("while both are trusted, by %s: %v", name, err)
		}
	}
	if retired, err := mesh.Retire(); err != nil || !retired {
		t.Fatalf("%v, %v", retired, err)
	}
	if err := status(young); err != nil {
		t.Errorf("by the new alone: %v", err)
	}
	if err := status(token); err == nil || !strings.Contains(err.Error(), "not of the mesh") {
		t.Errorf("by the former, which has ended: %v", err)
	}
}

// A client has few bytes before its token is looked at.
func TestLargeHeaders(t *testing.T) {
	mesh := founded(t)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is served") })
	addr := remote(t, func() (*tls.Config, error) { return mesh.APITLS(), nil }, h)
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: z\r\nX: "+strings.Repeat("x", 24<<10)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%+v", res)
	}
}
