package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("  hm1-file \r\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadToken(t.Context(), file, nil); got != "hm1-file" || err != nil {
		t.Errorf("of a file: %q, %v", got, err)
	}
	if got, err := ReadToken(t.Context(), "-", strings.NewReader("hm1-stdin")); got != "hm1-stdin" || err != nil {
		t.Errorf("of standard input: %q, %v", got, err)
	}
	if got, err := ReadToken(t.Context(), "-", strings.NewReader(strings.Repeat("x", 1<<20))); len(got) != 4<<10 || err != nil {
		t.Errorf("of a long line: %d bytes, %v", len(got), err)
	}
	if _, err := ReadToken(t.Context(), "-", strings.NewReader("\nhm1-late")); err == nil || !strings.Contains(err.Error(), "the first line of standard input is empty") {
		t.Errorf("of an empty line: %v", err)
	}
	if _, err := ReadToken(t.Context(), file+"x", nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), file+"x") {
		t.Errorf("of no file: %v", err)
	}
	// Nobody writes: an interrupted command ends all the same.
	silent, writes := io.Pipe()
	defer writes.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadToken(ctx, "-", silent); !errors.Is(err, context.Canceled) {
		t.Errorf("of a terminal: %v", err)
	}
}

// The token itself is in neither the configuration nor what is printed of it: the agent reads
// the file when it needs it.
func TestTokenFileOfTheAgent(t *testing.T) {
	clean(t)
	if got, stderr, code := agentConfigOf(t, "--join", "a:1", "--token-file", "/nonexistent/t"); code != 0 || got.TokenFile != "/nonexistent/t" || got.Token != "" {
		t.Errorf("%+v, %s (%d)", got, stderr, code)
	}
	t.Setenv("HOPMESH_TOKEN", "hm1-secret")
	_, stderr, code := agentConfigOf(t, "--join", "a:1", "--token-file", "/t")
	if code != 2 || !strings.Contains(stderr, "environment HOPMESH_TOKEN") || strings.Contains(stderr, "hm1-secret") {
		t.Errorf("both: %s (%d)", stderr, code)
	}
}
