package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/member"
	"golang.org/x/sys/unix"
)

// pipeAs makes a pipe, and the value of $JOURNAL_STREAM if it is the journal.
func pipeAs(t *testing.T) (r, w *os.File, journal string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	var s unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	return r, w, fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

func TestJoinCommandStaysOutOfTheJournal(t *testing.T) {
	const join = "hopmesh agent --join 10.0.0.1:7946 --token hm1-secret"
	for name, journal := range map[string]bool{"a pipe": false, "the journal": true} {
		t.Run(name, func(t *testing.T) {
			r, w, stream := pipeAs(t)
			if !journal {
				stream = "1:1" // standard error's
			}
			t.Setenv("JOURNAL_STREAM", stream)
			dir := t.TempDir()
			path := filepath.Join(dir, member.JoinFile)
			if err := os.WriteFile(path+".tmp", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			if err := announce(join, dir, w, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			printed, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(log.String(), "hm1-") {
				t.Errorf("the log has the token: %s", log.String())
			}
			if strings.Contains(string(printed), join) == journal {
				t.Errorf("printed %q", printed)
			}
			if !journal {
				return
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info, err)
			}
			kept, err := os.ReadFile(path)
			if err != nil || string(kept) != join+"\n" || !strings.Contains(log.String(), path) {
				t.Errorf("the file has %q (%v), the log %q", kept, err, log.String())
			}
		})
	}
}

// The token of a process is in no command line and in no log: a founder whose output is the
// journal leaves it in a file, and the next node reads it from standard input.
func TestTokensStayOutOfCommandLines(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	r, w, stream := pipeAs(t)
	founder := exec.Command(path, "agent", "--data-dir", box(t), "--name", "a", "--listen", "127.0.0.1:0", "--bootstrap")
	founder.Env = append(os.Environ(), "JOURNAL_STREAM="+stream)
	founder.Stdout, founder.Stderr = w, w
	if err := founder.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	log := &output{}
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(log, r)
		_ = founder.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = founder.Process.Kill()
		<-done
	})
	dir := founder.Args[3]
	file := filepath.Join(dir, member.JoinFile)
	var join string
	until(t, "the founder leaves its join command", func() bool {
		b, err := os.ReadFile(file)
		join = string(b)
		return err == nil
	})
	args, token, ok := strings.Cut(strings.TrimSpace(join), " --token ")
	if !ok || !strings.HasPrefix(args, "hopmesh agent --join ") {
		t.Fatalf("the join command is %q", join)
	}
	next := exec.Command(path, append(strings.Fields(args)[1:], "--data-dir", box(t), "--name", "b", "--listen", "127.0.0.1:0", "--token-file", "-")...)
	next.Stdin = strings.NewReader(token + "\n")
	b := launch(t, next, next.Args[5])
	until(t, "the other is in", func() bool { return b.ready() })
	for what, text := range map[string]string{"founder": log.String(), "newcomer": b.out.String()} {
		if text == "" || strings.Contains(text, token) {
			t.Errorf("the log of the %s is %q", what, text)
		}
	}
	for _, p := range []*os.Process{founder.Process, next.Process} {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		if err != nil || len(line) == 0 || bytes.Contains(line, []byte(token)) {
			t.Errorf("the command line is %q (%v)", line, err)
		}
	}
	// Who joined needs no token any more, nor a file that can be read.
	b.signal(syscall.SIGTERM)
	b.exit()
	again := start(t, b.dir, "--name", "b", "--listen", "127.0.0.1:0", "--join", strings.Fields(args)[3], "--token-file", "/nonexistent/token")
	until(t, "it is back", func() bool { return again.ready() })
	var list []api.TokenInfo
	again.json(&list, "token", "list")
	if len(list) != 1 || len(list[0].Nodes) != 1 || list[0].Nodes[0] != "b" || list[0].Owner != "a" {
		t.Errorf("the tokens are %+v", list)
	}
}
