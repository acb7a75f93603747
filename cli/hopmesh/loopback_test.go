package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Commands change things through loopback as the user that runs the daemon, and for others
// it can be read only. The secret goes with the daemon.
func TestChangesThroughLoopback(t *testing.T) {
	run := box(t)
	t.Setenv("XDG_RUNTIME_DIR", run)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d := start(t, box(t), "--name", "a", "--listen", "127.0.0.1:0", "--bootstrap", "--api", addr)
	until(t, "it is ready", func() bool { return d.ready() })
	if out, diag, code := hopmesh(t, "token", "create", "--addr", addr); code != 0 || !strings.Contains(out, "hm1-") {
		t.Errorf("as its user: %d %s %s", code, out, diag)
	}
	t.Setenv("XDG_RUNTIME_DIR", box(t)) // as another user, who has another
	t.Setenv("TMPDIR", box(t))
	if _, diag, code := hopmesh(t, "status", "--addr", addr); code != 0 {
		t.Errorf("reading as another: %d %s", code, diag)
	}
	out, diag, code := hopmesh(t, "token", "create", "--addr", addr)
	if code != 1 || out != "" || !strings.Contains(diag, filepath.Join(run, "hopmesh", "api-"+addr)) || strings.Count(strings.TrimSpace(diag), "\n") != 0 {
		t.Errorf("as another: %d %s %s", code, out, diag)
	}
	d.signal(syscall.SIGTERM)
	d.exit()
	left, err := os.ReadDir(filepath.Join(run, "hopmesh"))
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
