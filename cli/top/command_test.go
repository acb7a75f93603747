package top_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/spf13/cobra"
)

func root() *cobra.Command { return cli.New(cli.Local{}, "v0.1.0") }

func TestMain(m *testing.M) {
	time.Local = time.UTC // the golden files show times
	output.Clock = func() time.Time { return clitest.Then }
	os.Exit(m.Run())
}

// hopmesh runs a command line in this process.
func hopmesh(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, diag bytes.Buffer
	code = cli.Execute(ctx, root(), args, &out, &diag)
	return out.String(), diag.String(), code
}

func topCommands() []string { return []string{"help", "once", "json", "no-terminal", "no-daemon"} }

func TestTopCommand(t *testing.T) {
	for i, args := range []string{"help top", "top --once", "top --json", "top", "top --once --addr unix:/nonexistent/hopmesh.sock"} {
		name := topCommands()[i]
		t.Run(name, func(t *testing.T) {
			b := clitest.Healthy()
			b.JobInfo = clitest.SharedJob()
			b.JobInfo.ID = "j8"
			t.Setenv("HOPMESH_ADDR", clitest.Serve(t, b))
			stdout, stderr, code := hopmesh(t.Context(), strings.Fields(args)...)
			clitest.Compare(t, name, fmt.Sprintf("$ hopmesh %s\n%s-- stderr\n%s-- exit %d\n", args, stdout, stderr, code))
			if name == "json" {
				clitest.OneDocument(t, stdout)
			}
		})
	}
	addr := clitest.Serve(t, clitest.Healthy())
	for _, args := range []string{"--once", "--json"} {
		if code := cli.Execute(t.Context(), root(), []string{"top", args, "--addr", addr}, clitest.Full{}, clitest.Full{}); code != 1 {
			t.Errorf("%s, and nobody takes it: exit code %d", args, code)
		}
	}
}

// In a file, even with a terminal's name, nothing can be shown.
func TestTopInAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var diag strings.Builder
	if code := cli.Execute(t.Context(), root(), []string{"top", "--addr", clitest.Serve(t, clitest.Healthy())}, f, &diag); code != 2 || !strings.Contains(diag.String(), "needs a terminal") {
		t.Errorf("%d %s", code, diag.String())
	}
}
