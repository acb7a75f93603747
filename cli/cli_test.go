package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		everyCommand(c, visit)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	everyCommand(New(echo(), "v0.1.0"), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" || cmd.Long == "" || cmd.RunE == nil {
			t.Errorf("`%s` lacks Short, Long or RunE", path)
		}
		for _, example := range examples(cmd) {
			found, rest, err := cmd.Root().Find(example)
			if err != nil || found == cmd.Root() && len(example) > 0 {
				t.Errorf("`%s`: the example %v calls no command (%v)", path, example, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("`%s`: the example %v: %v", path, example, err)
				continue
			}
			if err := found.Args; err != nil {
				if err := err(found, found.Flags().Args()); err != nil {
					t.Errorf("`%s`: the example %v: %v", path, example, err)
				}
			}
		}
		stdout, stderr, code := hopmesh(t.Context(), echo(), append(strings.Fields(path)[1:], "--help")...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:\n  ") || !strings.Contains(stdout, path) {
			t.Errorf("`%s --help` ends with %d and says %s%s", path, code, stdout, stderr)
		}
	})
}

// examples are the command lines among a command's examples, without what a
// shell would do around them.
func examples(cmd *cobra.Command) [][]string {
	var list [][]string
	for line := range strings.Lines(cmd.Example) {
		_, call, found := strings.Cut(line, "hopmesh ")
		if !found {
			continue
		}
		if i := strings.IndexAny(call, "#|>;)"); i >= 0 {
			call = call[:i]
		}
		list = append(list, strings.Fields(call))
	}
	return list
}

// Every command that asks a daemon takes --addr and --json.
func TestThinClientsTakeTheSameFlags(t *testing.T) {
	local := map[string]bool{"agent": true, "demo": true, "bench transport": true, "bench data": true, "bench kernels": true, "bench sampler": true, "bench strategies": true, "bench scale": true, "bench forecast": true, "bench kills": true, "bench soak": true, "bench speedup": true, "bench node": true, "doctor": true, "recover": true, "restore": true, "version": true, "completion": true, "help": true, "train options": true}
	everyCommand(New(echo(), "v0.1.0"), func(cmd *cobra.Command) {
		name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "hopmesh"), " ")
		thin := !cmd.HasSubCommands() && !local[name]
		if has := cmd.Flags().Lookup("addr") != nil; has != thin {
			t.Errorf("%s: --addr: %v", name, has)
		}
		if thin && cmd.Flags().Lookup("json") == nil {
			t.Errorf("%s lacks --json", name)
		}
	})
}

func TestWhatIsAskedFor(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	for _, args := range [][]string{
		{"join", "a:1", "b:2", "--token", "hm1-abc", "--addr", addr},
		{"force-leave", "gamma", "--revoke", "--addr", addr},
	} {
		if _, stderr, code := hopmesh(t.Context(), echo(), args...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	want := []any{api.JoinRequest{Peers: []string{"a:1", "b:2"}, Token: "hm1-abc"}, api.ForceLeaveRequest{Name: "gamma", Revoke: true}}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("asked for %+v", b.Made)
	}
}

func TestCompletionAsksTheDaemon(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"force-leave", "--addr", addr, ""}, "gamma\nalpha\nbeta\n:4\n"},
		{[]string{"force-leave", "--addr", addr, "gamma", ""}, ":4\n"},
		{[]string{"dataset", "show", "--addr", addr, ""}, "products\ncora\n:4\n"},
		{[]string{"dataset", "verify", "--addr", addr, ""}, "products\ncora\n:4\n"},
		{[]string{"dataset", "remove", "--addr", addr, ""}, "products\ncora\n:4\n"},
		{[]string{"train", "show", "--addr", addr, ""}, "j7\nj8\nj9\n:4\n"},
		{[]string{"train", "options", ""}, "gcn\nsage\ngat\ngin\ngcnii\nresgcn\nrgcn\nhgt\nhetero:sage\nhetero:gat\nhetero:gcn\nhetero:gin\nmpnn\nmlp\nsingle\ncentric\nleap\np3\ngrappa\npipe\ngraph\nlocal\n:4\n"},
		{[]string{"train", "start", "--optimizer", ""}, "adam\nadamw\nsgd\n:4\n"},
		{[]string{"dataset", "import", ""}, ":4\n"},
		{[]string{"dataset", "import", "cora", ""}, ":0\n"},
		{[]string{"dataset", "import", "--dtype", ""}, "f32\nbf16\n:4\n"},
		{[]string{"token", "revoke", "--addr", addr, ""}, "3f9a01c2d4e5\n4f9a01c2d4e5\n:4\n"},
		{[]string{"force-leave", "--addr", "unix:/nonexistent/s", ""}, ":5\n"},
		{[]string{"completion", ""}, "bash\nzsh\nfish\npowershell\n:4\n"},
		{[]string{"monitor", "--level", ""}, "debug\ninfo\nwarn\nerror\n:4\n"},
		{[]string{"help", "token", ""}, "create\nlist\nrevoke\n:4\n"},
	} {
		out, _, _ := hopmesh(t.Context(), echo(), append([]string{"__complete"}, c.args...)...)
		if out != c.want {
			t.Errorf("%v: %q, want %q", c.args, out, c.want)
		}
	}
}

// A shell must not hang on a daemon that takes connections and says nothing.
func TestCompletionGivesUpSoon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	begin := time.Now()
	out, _, _ := hopmesh(t.Context(), echo(), "__complete", "force-leave", "--addr", "unix:"+path, "")
	if took := time.Since(begin); took > 30*time.Second || out != ":5\n" {
		t.Errorf("%q after %s", out, took)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range shells() {
		out, stderr, code := hopmesh(t.Context(), echo(), "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(out, "hopmesh") {
			t.Errorf("%s: %d %s", shell, code, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	out, _, code := hopmesh(t.Context(), echo(), "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != 0 || b.Version != "v0.1.0" || b.Go != runtime.Version() {
		t.Errorf("%d %s (%v)", code, out, err)
	}
	if out, _, _ := hopmesh(t.Context(), echo(), "version"); !strings.HasPrefix(out, "hopmesh v0.1.0 (go") {
		t.Errorf("%q", out)
	}
}

func TestMonitorEndsWellWhenInterrupted(t *testing.T) {
	b := clitest.Healthy()
	b.Open, b.Lines = true, []api.LogLine{{Message: "one"}}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, diag strings.Builder
	code := Execute(ctx, New(echo(), ""), []string{"monitor", "--addr", clitest.Serve(t, b)}, clitest.FirstWrite(&out, interrupt), &diag)
	if code != 0 || diag.String() != "" || !strings.Contains(out.String(), "one") {
		t.Errorf("%d %q %q", code, out.String(), diag.String())
	}
}

// An interrupt during `leave` ends the wait and says so.
func TestInterrupted(t *testing.T) {
	b := clitest.Healthy()
	b.Open = true
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	var diag strings.Builder
	stop := func() { interrupt(errors.New("signal")) }
	code := Execute(ctx, New(echo(), ""), []string{"leave", "--addr", clitest.Serve(t, b)}, io.Discard, clitest.FirstWrite(&diag, stop))
	if code != 1 || !strings.HasSuffix(diag.String(), "hopmesh: interrupted\n") {
		t.Errorf("%d %q", code, diag.String())
	}
}

func TestOutputThatNobodyTakes(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	for _, command := range []string{"members", "members --json", "status", "token create", "plan show", "version", "monitor", "dataset list", "dataset show cora --shards", "dataset import cora a.npz", "dataset verify cora", "train list", "train show j7 --epochs", "train start --dataset cora", "train watch j7", "train options"} {
		args := strings.Fields(command)
		if args[0] != "version" && command != "train options" {
			args = append(args, "--addr", addr)
		}
		if code := Execute(t.Context(), New(echo(), ""), args, clitest.Full{}, io.Discard); code != 1 {
			t.Errorf("%s: exit code %d", command, code)
		}
	}
}

func TestJoinThatIsNeverReady(t *testing.T) {
	b := clitest.Healthy()
	b.Self.Ready = false
	c, err := api.NewClient(clitest.Serve(t, b))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := untilReady(t.Context(), c, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "hopmesh status") {
		t.Errorf("%v", err)
	}
}
