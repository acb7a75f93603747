package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// built is the folder of the program, "" until a test needs it.
var built string

// program is the built binary, made once for all tests here.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hopmesh-test")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "hopmesh")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// box is a folder with a short path, for data directories with sockets in them.
func box(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hm") //nolint:usetesting // its path would be too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// hopmesh runs the program to its end.
func hopmesh(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	err = cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), diag.String(), cmd.ProcessState.ExitCode()
}

// daemon is an agent in a process of its own.
type daemon struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
}

// output collects what a daemon prints, and may be read meanwhile.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func start(t *testing.T, dir string, args ...string) *daemon {
	t.Helper()
	return startAs(t, []string{"agent"}, dir, args...)
}

// startAs is start with another command, which takes the flags of agent.
func startAs(t *testing.T, command []string, dir string, args ...string) *daemon {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, exec.Command(path, slices.Concat(command, []string{"--data-dir", dir}, args)...), dir)
}

// launch runs a command that becomes an agent with this folder.
func launch(t *testing.T, cmd *exec.Cmd, dir string) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: dir, cmd: cmd, out: &output{}, done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.done
	})
	return d
}

// exit waits for the daemon's end and returns its exit code.
func (d *daemon) exit() int {
	d.t.Helper()
	select {
	case <-d.done:
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		d.t.Fatalf("the daemon does not end:\n%s", d.out)
		return 0
	}
}

func (d *daemon) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// json runs a client command against the daemon and decodes what it prints.
func (d *daemon) json(v any, args ...string) int {
	d.t.Helper()
	out, diag, code := hopmesh(d.t, append(args, "--addr", "unix:"+filepath.Join(d.dir, "hopmesh.sock"), "--json")...)
	if out != "" {
		if err := json.Unmarshal([]byte(out), v); err != nil {
			d.t.Fatalf("%v printed %q (%s): %v", args, out, diag, err)
		}
	}
	return code
}

// patience is how long real processes may take for anything, on a machine that has others
// to serve: what hangs is seen then, and how fast they are is measured elsewhere.
const patience = 4 * time.Minute

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !holds(); <-tick.C {
		if time.Since(begin) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func (d *daemon) leader() string {
	var s api.Status
	d.json(&s, "status")
	return s.Leader
}

func (d *daemon) ready() bool {
	var s api.Status
	return d.json(&s, "status") == 0 && s.Ready
}

// alive counts who is alive and who leads, by `members --json`.
func (d *daemon) census() (alive, leaders, voters int) {
	var list []api.Member
	d.json(&list, "members")
	for _, m := range list {
		if m.Status == "alive" {
			alive++
		}
		if m.Role == "leader" {
			leaders++
		}
		if m.Role != "nonvoter" {
			voters++
		}
	}
	return alive, leaders, voters
}

var (
	joinLine  = regexp.MustCompile(`hopmesh agent (--join .* --token \S+)`)
	extraLine = regexp.MustCompile(`For another node on this machine, add (.*)\.`)
)

// Three processes, the printed line typed for the second and third, with the flags that are
// printed for other nodes on this machine; the leader is killed with -9, survived, and back with
// nothing but its directory.
func TestThreeProcesses(t *testing.T) {
	t.Parallel()
	dir := box(t)
	first := start(t, filepath.Join(dir, "n1"), "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "the join line is printed", func() bool { return extraLine.MatchString(first.out.String()) })
	join := strings.Fields(joinLine.FindStringSubmatch(first.out.String())[1])
	if extra := extraLine.FindStringSubmatch(first.out.String())[1]; extra != "--data-dir DIR --listen :0" {
		t.Errorf("%q is to be added", extra)
	}
	daemons := []*daemon{first}
	for _, n := range []string{"n2", "n3"} {
		// Tests keep to loopback; the names are the host's with a number.
		daemons = append(daemons, start(t, filepath.Join(dir, n), append([]string{"--listen", "127.0.0.1:0"}, join...)...))
	}
	for _, d := range daemons {
		until(t, "three alive, one leader, three voters", func() bool {
			alive, leaders, voters := d.census()
			return alive == 3 && leaders == 1 && voters == 3
		})
	}
	leader := first.leader()
	var rest *daemon
	var killed int
	names := map[string]bool{}
	for i := range daemons {
		var s api.Status
		daemons[i].json(&s, "status")
		names[s.Node] = true
		if s.Node == leader {
			killed = i
		} else {
			rest = daemons[i]
		}
	}
	if host, err := os.Hostname(); err != nil || !names[host] || !names[host+"-2"] || !names[host+"-3"] {
		t.Errorf("the nodes are named %v", names)
	}
	daemons[killed].signal(syscall.SIGKILL)
	<-daemons[killed].done
	until(t, "another leader", func() bool { l := rest.leader(); return l != "" && l != leader })
	until(t, "two alive", func() bool { alive, _, _ := rest.census(); return alive == 2 })

	back := start(t, daemons[killed].dir, "--listen", "127.0.0.1:0")
	until(t, "it is back", func() bool { alive, leaders, _ := back.census(); return back.ready() && alive == 3 && leaders == 1 })
	var plans [2]api.Plan
	until(t, "the plans are equal", func() bool {
		back.json(&plans[0], "plan", "show")
		rest.json(&plans[1], "plan", "show")
		return plans[0].Digest == plans[1].Digest && plans[0].Digest != ""
	})
	// And all of them stop as they should.
	for _, d := range []*daemon{back, rest} {
		d.signal(syscall.SIGTERM)
		if code := d.exit(); code != 0 {
			t.Errorf("SIGTERM ended a daemon with %d:\n%s", code, d.out)
		}
	}
}

func TestBadStarts(t *testing.T) {
	t.Parallel()
	dir := box(t)
	n1 := start(t, filepath.Join(dir, "n1"), "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "n1 is ready", n1.ready)
	var members []api.Member
	n1.json(&members, "members")
	addr := members[0].Address
	var good, revoked api.Token
	n1.json(&good, "token", "create")
	n1.json(&revoked, "token", "create")
	if code := n1.json(new(any), "token", "revoke", revoked.ID); code != 0 {
		t.Fatalf("token revoke ended with %d", code)
	}
	foreign := start(t, filepath.Join(dir, "f1"), "--name", "f1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "the foreign mesh is ready", foreign.ready)
	var alien api.Token
	foreign.json(&alien, "token", "create")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "conf.toml")
	if err := os.WriteFile(conf, []byte("data-dir = \"x\"\nno-such-key = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"a revoked token":         {[]string{"--data-dir", fresh("a"), "--name", "a", "--listen", "127.0.0.1:0", "--join", addr, "--token", revoked.Token}, 1, []string{"token", addr}},
		"a damaged token":         {[]string{"--data-dir", fresh("b"), "--name", "b", "--listen", "127.0.0.1:0", "--join", addr, "--token", good.Token[:40]}, 1, []string{"token"}},
		"a foreign mesh":          {[]string{"--data-dir", fresh("c"), "--name", "c", "--listen", "127.0.0.1:0", "--join", addr, "--token", alien.Token}, 1, []string{"another mesh", addr}},
		"a name that is in use":   {[]string{"--data-dir", fresh("d"), "--name", "n1", "--listen", "127.0.0.1:0", "--join", addr, "--token", good.Token}, 1, []string{"n1"}},
		"a port in use":           {[]string{"--data-dir", fresh("e"), "--name", "e", "--listen", addr, "--bootstrap"}, 1, []string{addr, "--listen"}},
		"an unwritable directory": {[]string{"--data-dir", filepath.Join(file, "x"), "--name", "g", "--bootstrap"}, 1, []string{file, "--data-dir"}},
		"a directory in use":      {[]string{"--data-dir", n1.dir, "--listen", "127.0.0.1:0"}, 1, []string{n1.dir, "in use"}},
		"an unknown key":          {[]string{"--config", conf}, 2, []string{"no-such-key", conf}},
		"an unknown flag":         {[]string{"--no-such-flag"}, 2, []string{"--no-such-flag"}},
		"a token without peers":   {[]string{"--data-dir", fresh("h"), "--name", "h", "--token", good.Token}, 2, []string{"--join"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, diag, code := hopmesh(t, append([]string{"agent"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(diag, want) {
					t.Errorf("%q is not in %q (stdout %q)", want, diag, out)
				}
			}
			if strings.Contains(diag, "goroutine ") {
				t.Errorf("it panicked: %s", diag)
			}
		})
	}
	if !n1.ready() {
		t.Error("the first node was disturbed")
	}
}

// A node that is alone does not use a log that was cut: it says what to do, and stops when asked.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	dir := box(t)
	d := start(t, filepath.Join(dir, "n1"), "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "it is ready", d.ready)
	d.signal(syscall.SIGKILL)
	<-d.done
	damaged := 0
	err := filepath.WalkDir(filepath.Join(d.dir, "raft"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		damaged++
		return os.Truncate(path, info.Size()/3)
	})
	if err != nil || damaged == 0 {
		t.Fatalf("damaged %d files: %v", damaged, err)
	}
	again := start(t, d.dir, "--listen", "127.0.0.1:0")
	until(t, "it says so", func() bool {
		var s api.Status
		again.json(&s, "status")
		return !s.Ready && len(s.Damage) == 1 && s.Damage[0].Kind == "log" && s.Damage[0].Node == "n1" && strings.Contains(s.Damage[0].What, "hopmesh recover")
	})
	again.signal(syscall.SIGTERM)
	if code := again.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := again.out.String(); strings.Contains(out, "goroutine ") || !strings.Contains(out, filepath.Join(d.dir, "raft")) {
		t.Errorf("it says: %s", out)
	}
}

// One thread computes where a control group grants one processor or less, unless GOMAXPROCS is set.
func TestOneThreadForOneProcessor(t *testing.T) {
	for _, c := range []struct {
		share float64
		procs string
		want  bool
	}{{0, "", false}, {0.45, "", true}, {1, "", true}, {1.5, "", false}, {0.45, "2", false}} {
		if got := oneThread(c.share, c.procs); got != c.want {
			t.Errorf("a share of %g with GOMAXPROCS=%q: %v", c.share, c.procs, got)
		}
	}
}
