package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/cli/clitest"
)

// A pipe that nobody writes to would never end.
func TestScriptsThatAreNoFiles(t *testing.T) {
	addr, pipe := clitest.Serve(t, clitest.Healthy()), filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		pipe:        "is a device, a pipe or a socket: name a Python file",
		t.TempDir(): "is a directory",
		"/nowhere":  "no such file",
	} {
		_, stderr, code := hopmesh(t.Context(), Local{}, "run", "--addr", addr, path)
		if code == 0 || strings.Count(stderr, "\n") > 2 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", path, code, stderr)
		}
	}
}
