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

// Another machine's user operates a mesh by a token, as far as its scope goes, and by nothing else.
func TestCommandsOverTLS(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", box(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := "https://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d := start(t, box(t), "--name", "a", "--listen", "127.0.0.1:0", "--bootstrap", "--api", addr)
	until(t, "it is ready", func() bool { return d.ready() })
	file := func(scope string) string {
		var made struct{ Token, ID string }
		if code := d.json(&made, "api", "token", "create", "--scope", scope, "--name", "ci"); code != 0 {
			t.Fatalf("a token of the scope %s: %d", scope, code)
		}
		path := filepath.Join(box(t), made.ID)
		if err := os.WriteFile(path, []byte(made.Token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read, operate := file("read"), file("operate")
	generate := []string{"dataset", "generate", "tiny", "--kind", "sbm", "--vertices", "100", "--edges", "400", "--shards", "1"}
	for _, c := range []struct {
		args []string
		file string
		code int
		says string
	}{
		{[]string{"status"}, read, 0, ""},
		{[]string{"status"}, "", 2, "--api-token-file FILE"},
		{generate, read, 1, "scope operate, and this one has the scope read"},
		{generate, operate, 0, ""},
		{[]string{"token", "create"}, operate, 1, "not served to other machines"},
		{[]string{"backup", filepath.Join(box(t), "b")}, operate, 1, "not served to other machines"},
		{[]string{"api", "token", "list"}, read, 0, ""},
		{[]string{"api", "token", "revoke", filepath.Base(read)}, operate, 1, "not served to other machines"},
	} {
		args := append(c.args, "--addr", addr)
		if c.file != "" {
			args = append(args, "--api-token-file", c.file)
		}
		_, diag, code := hopmesh(t, args...)
		if code != c.code || !strings.Contains(diag, c.says) {
			t.Errorf("%v: %d %s", args, code, diag)
		}
	}
	if _, diag, code := hopmesh(t, "status", "--addr", strings.TrimPrefix(addr, "https://")); code != 1 || !strings.Contains(diag, "give --addr "+addr) {
		t.Errorf("without TLS: %d %s", code, diag)
	}
	if code := d.json(new(any), "api", "token", "revoke", filepath.Base(read)); code != 0 {
		t.Errorf("revoked: %d", code)
	}
	t.Setenv("HOPMESH_ADDR", addr)
	t.Setenv("HOPMESH_API_TOKEN_FILE", read)
	if _, diag, code := hopmesh(t, "status"); code != 1 || !strings.Contains(diag, "not known here") {
		t.Errorf("by a token that is revoked: %d %s", code, diag)
	}
	t.Setenv("HOPMESH_API_TOKEN_FILE", operate)
	if _, diag, code := hopmesh(t, "status"); code != 0 {
		t.Errorf("by the other, from the environment: %d %s", code, diag)
	}
	d.signal(syscall.SIGTERM)
	d.exit()
}
