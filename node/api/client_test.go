package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestAddresses(t *testing.T) {
	for addr, good := range map[string]bool{
		"unix:/run/hopmesh.sock": true, "unix:relative.sock": true, "127.0.0.1:7947": true, "[::1]:7947": true, "localhost:1": true,
		"": false, "unix:": false, "/run/hopmesh.sock": false, "localhost": false, ":7947": false, "localhost:": false,
		"localhost:http": false, "localhost:0": false, "localhost:70000": false, "http://localhost:1": false, "a/b:1": false, "u@h:1": false,
	} {
		if _, err := NewClient(addr); (err == nil) != good {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// What a daemon that was killed leaves behind.
	stale := t.TempDir() + "/s"
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	u.SetUnlinkOnClose(false)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{closed, "unix:" + t.TempDir() + "/none", "unix:" + stale} {
		c, err := NewClient(addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Status(t.Context())
		if !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "hopmesh agent") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestSentencesOfFailures(t *testing.T) {
	c, err := NewClient("unix:/run/s")
	if err != nil {
		t.Fatal(err)
	}
	denied := &url.Error{Op: "Get", URL: "http://localhost/v1/status", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}}
	got := c.broken(t.Context(), denied)
	if !errors.Is(got, ErrPermission) || !strings.Contains(got.Error(), "sudo") || !strings.Contains(got.Error(), "/run/s") {
		t.Errorf("%v", got)
	}
	torn := c.broken(t.Context(), &url.Error{Op: "Get", URL: "http://localhost/v1/status", Err: syscall.ECONNRESET})
	if !errors.Is(torn, ErrGone) || strings.Contains(torn.Error(), "http://") {
		t.Errorf("%v", torn)
	}
	why := errors.New("the user changed their mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if got := c.broken(ctx, denied); !errors.Is(got, why) {
		t.Errorf("%v", got)
	}
}

// What answers may be another program, or another version.
func TestStrangeAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"another program": {http.NotFound, "404"},
		"a redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "302"},
		"no JSON":         {func(w http.ResponseWriter, _ *http.Request) { text(w, 200, "hello") }, "read the answer"},
		"an empty refusal": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, 500, struct{}{})
		}, "500"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, `{"node":`)
		}, "went away before"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			client, err := NewClient(s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}

func TestStreamCutInTheMiddle(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"message":"one"}`+"\n"+`{"mess`)
	}))
	defer s.Close()
	c, err := NewClient(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var events, failures int
	for _, err := range c.Events(t.Context()) {
		if err != nil {
			failures++
		} else {
			events++
		}
	}
	if events != 1 || failures != 1 {
		t.Errorf("%d events and %d failures", events, failures)
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"127.0.0.1:7947", "unix:/run/s", "[::1]:1", "a:b:1", "", ":0", "%:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		c, err := NewClient(addr)
		if err != nil {
			return
		}
		u, err := url.Parse(c.base + "/v1/status")
		if err != nil || u.Path != "/v1/status" {
			t.Errorf("%q was accepted, and asks for %v (%v)", addr, u, err)
		}
	})
}

// A stream that ends with its token says so, and one that ends with its node ends.
func TestStreamOfAnEndedToken(t *testing.T) {
	for status, want := range map[int]string{http.StatusUnauthorized: "the token has expired", http.StatusOK: "", http.StatusServiceUnavailable: ""} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/events" {
				_, _ = fmt.Fprintln(w, `{"message":"one"}`)
				return
			}
			send(w, status, failure{"the token has expired"})
		}))
		c, err := NewClient(s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.token = "t"
		var last error
		for _, err := range c.Events(t.Context()) {
			last = err
		}
		if last == nil && want != "" || last != nil && last.Error() != want {
			t.Errorf("%d: it ends with %v, want %q", status, last, want)
		}
		c.Close()
		s.Close()
	}
}
