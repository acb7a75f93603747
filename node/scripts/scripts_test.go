package scripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// network joins the nodes of a test.
type network struct {
	t     *testing.T
	mu    sync.Mutex
	nodes map[string]*point
	jobs  []Job
	stops []string
}

// A point is a node.
type point struct {
	*Scripts
	net      *network
	id       string
	dead     bool
	handlers map[string]mesh.CallHandler
	end      context.CancelFunc
}

func (p *point) ID() string                               { return p.id }
func (p *point) Handle(method string, h mesh.CallHandler) { p.handlers[method] = h }
func (p *point) Call(ctx context.Context, peer, method string, body []byte) ([]byte, error) {
	p.net.mu.Lock()
	to := p.net.nodes[peer]
	lost := to == nil || to.dead || p.dead
	p.net.mu.Unlock()
	if lost {
		return nil, errors.New("no answer")
	}
	return to.handlers[method](ctx, p.id, bytes.Clone(body))
}

// launched is what a fake script is given.
type launched struct {
	node   string
	count  int // how often it was started on the node before
	out    *Lines
	values []string
	args   []string
	since  time.Time // when its node was added
}

// add starts a node whose scripts are computed by script.
func (n *network) add(id string, script func(context.Context, launched) (int, error)) *point {
	p := &point{net: n, id: id, handlers: map[string]mesh.CallHandler{}}
	started, since := 0, time.Now()
	p.Scripts = New(Config{
		Mesh: p, Python: "python3", Socket: "unix:/run/" + id, Dir: filepath.Join(n.t.TempDir(), "scripts"), Log: slog.New(slog.DiscardHandler),
		Nodes: func() (list []Node) {
			n.mu.Lock()
			defer n.mu.Unlock()
			for id, p := range n.nodes {
				if !p.dead {
					list = append(list, Node{id, "node-" + id})
				}
			}
			slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
			return list
		},
		Jobs: func() []Job {
			n.mu.Lock()
			defer n.mu.Unlock()
			return slices.Clone(n.jobs)
		},
		Stop: func(_ context.Context, id string) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.stops = append(n.stops, id)
			return nil
		},
		Launch: func(ctx context.Context, folder string, command, environment []string, out *Lines) (int, error) {
			text, err := os.ReadFile(command[1])
			if err != nil || string(text) != "the script" || filepath.Dir(command[1]) != folder {
				n.t.Errorf("the script is %q, %v", text, err)
			}
			n.mu.Lock()
			started++
			l := launched{id, started - 1, out, environment, command[2:], since}
			n.mu.Unlock()
			return script(ctx, l)
		},
	})
	ctx, end := context.WithCancel(n.t.Context())
	over := make(chan struct{})
	p.end = func() { end(); <-over }
	go func() {
		defer close(over)
		_ = p.Scripts.Run(ctx)
	}()
	n.mu.Lock()
	n.nodes[id] = p
	n.mu.Unlock()
	return p
}

func (n *network) set(run string, over, done bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.jobs = []Job{{ID: "j0", Run: "other"}, {ID: "j1", Run: run, Over: over, Done: done}}
}

func (n *network) kill(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[id].dead = true
}

// heard is what a user reads.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) tell(e api.RunEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case e.Line != nil:
		h.all = append(h.all, e.Node+": "+*e.Line)
	case e.Note != "":
		h.all = append(h.all, e.Node+" "+e.Note)
	}
}

func (h *heard) has(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.all, what)
}

// inMesh runs a test with nodes in virtual time.
func inMesh(t *testing.T, ids string, script func(context.Context, launched) (int, error), test func(t *testing.T, n *network, h *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, nodes: map[string]*point{}}
		for _, id := range ids {
			n.add(string(id), script)
		}
		test(t, n, &heard{})
		for _, p := range n.nodes {
			p.end()
		}
	})
}

var request = api.RunRequest{Name: "train.py", Script: "the script", Args: []string{"--hidden", "64"}, Run: "k"}

func TestAScriptBesideEachNode(t *testing.T) {
	script := func(_ context.Context, l launched) (int, error) {
		for _, want := range []string{"HOPMESH_API=unix:/run/" + l.node, "HOPMESH_RUN=k", "HOPMESH_RANK=" + map[string]string{"a": "0", "b": "1", "c": "2"}[l.node], "HOPMESH_SIZE=3"} {
			if !slices.Contains(l.values, want) {
				t.Errorf("node %s: %q is not in the environment", l.node, want)
			}
		}
		for i := range 3 {
			_, _ = fmt.Fprintf(l.out, "%v %d\n", l.args, i)
		}
		_, _ = fmt.Fprint(l.out, "no end")
		return 0, nil
	}
	t.Setenv("HOPMESH_TOKEN", "secret")
	inMesh(t, "abc", script, func(t *testing.T, n *network, h *heard) {
		d, err := n.nodes["b"].Start(t.Context(), request, h.tell)
		if err != nil || d.Run != "k" || len(d.Nodes) != 3 {
			t.Errorf("%+v, %v", d, err)
		}
		for _, id := range []string{"a", "b", "c"} {
			for _, want := range []string{"[--hidden 64] 0", "[--hidden 64] 2", "no end"} {
				if !h.has("node-" + id + ": " + want) {
					t.Errorf("%q of %s is missing in %q", want, id, h.all)
				}
			}
		}
		if len(h.all) != 12 {
			t.Errorf("%q", h.all)
		}
		for id, p := range n.nodes {
			if left, err := os.ReadDir(p.Dir); err == nil && len(left) > 0 {
				t.Errorf("node %s keeps %v", id, left)
			}
		}
	})
}

// A node that dies does not end a run. The script of the others starts again.
func TestANodeThatDies(t *testing.T) {
	var n *network
	script := func(ctx context.Context, l launched) (int, error) {
		if l.count == 0 {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return -15, nil
			}
			if l.node == "b" {
				n.kill("b")
				<-ctx.Done()
				return -15, nil
			}
			return codeAgain, nil
		}
		_, _ = fmt.Fprintln(l.out, "again")
		n.set("k", true, true)
		return 0, nil
	}
	inMesh(t, "abc", script, func(t *testing.T, in *network, h *heard) {
		n = in
		n.set("k", false, false)
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"node-b its daemon is gone", "node-a starts again from the last checkpoint", "node-a: again", "node-c: again"} {
			if !h.has(want) {
				t.Errorf("%q is missing in %q", want, h.all)
			}
		}
	})
}

// A script whose job others have done ends well, though it asks to be started again.
func TestAgainOnceAllIsDone(t *testing.T) {
	script := func(context.Context, launched) (int, error) { return codeAgain, nil }
	inMesh(t, "ab", script, func(t *testing.T, n *network, h *heard) {
		n.set("k--2", true, true)
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil || len(h.all) > 0 {
			t.Errorf("%v, %q", err, h.all)
		}
	})
}

// A node that comes while the job goes on gets the script, too.
func TestANodeThatComes(t *testing.T) {
	var n *network
	script := func(ctx context.Context, l launched) (int, error) {
		if l.node == "c" {
			n.set("k", true, true)
			return 0, nil
		}
		for {
			select {
			case <-time.After(time.Second):
				n.mu.Lock()
				over := len(n.jobs) > 0 && n.jobs[1].Over
				n.mu.Unlock()
				if over {
					return 0, nil
				}
			case <-ctx.Done():
				return -15, nil
			}
		}
	}
	inMesh(t, "ab", script, func(t *testing.T, in *network, h *heard) {
		n = in
		go func() {
			<-time.After(time.Minute)
			n.add("c", script)
			<-time.After(time.Minute) // nothing happens as long as it knows no job
			if h.has("node-c starts too, from the last checkpoint") {
				t.Error("a script was started beside a node that knows no job")
			}
			n.set("k", false, false)
		}()
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil || !h.has("node-c starts too, from the last checkpoint") {
			t.Errorf("%v, %q", err, h.all)
		}
	})
}

// A script that fails beside one node is ended beside all, and its jobs are stopped.
func TestAScriptThatFails(t *testing.T) {
	ended := make(chan string, 3)
	script := func(ctx context.Context, l launched) (int, error) {
		if l.node == "b" {
			_, _ = fmt.Fprint(l.out, "ValueError: no\n\n")
			return 3, nil
		}
		<-ctx.Done()
		ended <- l.node
		return -15, nil
	}
	inMesh(t, "abc", script, func(t *testing.T, n *network, h *heard) {
		n.set("k", false, false)
		_, err := n.nodes["a"].Start(t.Context(), request, h.tell)
		if err == nil || err.Error() != "the script beside node-b ended with exit code 3: ValueError: no" {
			t.Error(err)
		}
		if len(ended) != 2 || !slices.Equal(n.stops, []string{"j1"}) {
			t.Errorf("%d have ended, and %v were stopped", len(ended), n.stops)
		}
	})
}

// What a user interrupts ends everywhere; what nobody asks for any more does by itself.
func TestWhoAsksGoesAway(t *testing.T) {
	ended := make(chan string, 4)
	script := func(ctx context.Context, l launched) (int, error) {
		<-ctx.Done()
		ended <- l.node
		return -15, nil
	}
	inMesh(t, "ab", script, func(t *testing.T, n *network, h *heard) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := n.nodes["a"].Start(ctx, request, h.tell); !errors.Is(err, context.DeadlineExceeded) || len(ended) != 2 {
			t.Errorf("%v, and %d have ended", err, len(ended))
		}
		// The node that was asked dies, and with it its script.
		go func() { _, _ = n.nodes["a"].Start(t.Context(), request, h.tell) }()
		<-time.After(time.Minute)
		n.kill("a")
		<-time.After(lease + time.Second)
		if len(ended) != 3 {
			t.Errorf("%d have ended", len(ended))
		}
	})
}

// A script that writes much waits until its output is read, and loses nothing.
func TestMuchOutput(t *testing.T) {
	const lines = 40_000
	script := func(_ context.Context, l launched) (int, error) {
		for i := range lines {
			_, _ = fmt.Fprintf(l.out, "line %d of many\n", i)
		}
		return 0, nil
	}
	inMesh(t, "a", script, func(t *testing.T, n *network, h *heard) {
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil {
			t.Fatal(err)
		}
		if len(h.all) != lines || h.all[lines-1] != fmt.Sprintf("node-a: line %d of many", lines-1) {
			t.Errorf("%d lines", len(h.all))
		}
	})
}

func TestWhatDoesNotRun(t *testing.T) {
	var runs atomic.Bool // until it is ended, so that nothing but a refusal ends the request
	script := func(ctx context.Context, _ launched) (int, error) {
		if runs.Load() {
			<-ctx.Done()
		}
		return 0, errors.New("it is no program")
	}
	inMesh(t, "ab", script, func(t *testing.T, n *network, h *heard) {
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err == nil || !strings.Contains(err.Error(), "can't be run: it is no program") {
			t.Error(err)
		}
		r := request
		r.Nodes = 3
		if _, err := n.nodes["a"].Start(t.Context(), r, h.tell); err == nil || !strings.Contains(err.Error(), "the mesh has 2 nodes that live") {
			t.Error(err)
		}
		n.nodes["b"].Python = ""
		runs.Store(true)
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err == nil || !strings.Contains(err.Error(), "no script runs beside node-b: it runs no scripts: start its agent with --python") {
			t.Error(err)
		}
	})
}

func TestLines(t *testing.T) {
	h := &held{changed: make(chan struct{})}
	w := &Lines{ctx: t.Context(), to: h}
	for _, part := range []string{"a", "b\r\n", "\n", strings.Repeat("x", mostLine+3), "\nend \xff"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	w.Close()
	var got []string
	for _, l := range h.lines {
		got = append(got, l.Text)
	}
	if want := []string{"ab", "", strings.Repeat("x", mostLine), "xxx", "end \ufffd"}; !slices.Equal(got, want) {
		t.Errorf("%.100q", got)
	}
}

// Commands are ended with all that they have started.
func TestLaunch(t *testing.T) {
	run := func(ctx context.Context, script string) (int, []string, error) {
		h := &held{changed: make(chan struct{})}
		w := &Lines{ctx: t.Context(), to: h}
		code, err := launch(ctx, t.TempDir(), []string{"/bin/sh", "-c", script, "x", "y z"}, []string{"A=b", "PATH=/bin:/usr/bin"}, w)
		w.Close()
		var lines []string
		for _, l := range h.lines {
			lines = append(lines, l.Text)
		}
		return code, lines, err
	}
	code, lines, err := run(t.Context(), `echo "$1 $A"; echo no >&2; exit 3`)
	if code != 3 || err != nil || !slices.Equal(lines, []string{"y z b", "no"}) {
		t.Errorf("%d, %q, %v", code, lines, err)
	}
	if code, _, err := run(t.Context(), "kill -9 $$"); code != -9 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(t.TempDir(), "begun")
	go func() {
		for {
			if _, err := os.Stat(fifo); err == nil {
				cancel()
				return
			}
		}
	}()
	if code, _, err := run(ctx, "sleep 1000 & touch "+fifo+"; wait"); code != -15 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// Whatever another node sends is refused or can be run.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"run":"k","asker":"a","name":"train.py","script":"x","rank":0,"size":1}`))
	f.Add([]byte(`{"run":"k","asker":"a","from":3}`))
	f.Add([]byte(`{"lines":[{"text":"a"},{"text":"b","note":true}],"over":true,"code":-9,"last":"a","apart":true}`))
	f.Add([]byte(`{"run":"../k","name":"../x","from":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if b, err := readBegin(body); err == nil && (filepath.Base(b.Name) != b.Name || filepath.Base(b.Word) != b.Word || b.Name == ".." || b.Script == "" || b.Rank >= b.Size) {
			t.Errorf("%+v is taken", b)
		}
		_, _ = readAnswer(body)
		if l, err := readLook(body); err == nil && l.From < 0 {
			t.Errorf("%+v is taken", l)
		}
	})
}
