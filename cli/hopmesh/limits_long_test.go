//go:build long

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/node/api"
)

// A realLimit is how the system limits a process's memory.
type realLimit struct {
	name string
	// under returns the command that runs another one under the limit.
	under func(t *testing.T, bytes uint64, command []string) *exec.Cmd
	// check returns why this machine has no such limit.
	check func() error
	// memory is the --memory of daemons: first enough, then too little for most jobs.
	memory []uint64
}

var realLimits = []realLimit{
	// The shell sets the limit before the daemon reads it.
	{"data", func(_ *testing.T, bytes uint64, command []string) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, bytes>>10)}, command...)...)
	}, func() error { return nil }, []uint64{448 << 20, 192 << 20}},
	{"group", func(t *testing.T, bytes uint64, command []string) *exec.Cmd {
		group, err := newGroup(bytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		return exec.Command("sh", append([]string{"-c", fmt.Sprintf(`echo $$ > %s && exec "$0" "$@"`, filepath.Join(group, "cgroup.procs"))}, command...)...)
	}, func() error {
		group, err := newGroup(1 << 30)
		if err != nil {
			return err
		}
		return os.Remove(group)
	}, []uint64{320 << 20, 128 << 20}},
}

// newGroup makes a control group, of version 2 or 1, with a limit of memory.
func newGroup(bytes uint64) (dir string, err error) {
	err = errors.New("no control groups of memory")
	for root, limit := range map[string]string{"/sys/fs/cgroup": "memory.max", "/sys/fs/cgroup/memory": "memory.limit_in_bytes"} {
		if _, wrong := os.Stat(filepath.Join(root, "cgroup.procs")); wrong != nil {
			continue
		}
		if dir, err = os.MkdirTemp(root, "hopmesh-test"); err != nil {
			continue
		}
		if err = os.WriteFile(filepath.Join(dir, limit), []byte(strconv.FormatUint(bytes, 10)), 0o600); err == nil {
			return dir, nil
		}
		err = errors.Join(err, os.Remove(dir))
	}
	return "", err
}

// A trial is a job that may not fit.
type trial struct{ strategy, recipe string }

// of a graph of a hundred thousand vertices
const (
	sampledRecipe = "--model sage --hidden 64 --fanout 10,10 --batch 1024 --layers 2"
	wholeRecipe   = "--model gcn --hidden 32 --layers 3"
)

var trials = []trial{
	{"single", sampledRecipe}, {"single", wholeRecipe}, {"leap", sampledRecipe}, {"leap", wholeRecipe}, {"centric", sampledRecipe}, {"p3", sampledRecipe},
	{"grappa", sampledRecipe}, {"graph", wholeRecipe}, {"pipe", wholeRecipe}, {"local", sampledRecipe},
}

// An outcome is how a trial ended.
type outcome struct {
	id    string // of the job, "" if the strategy can't train it
	done  bool
	error string
	peaks []uint64 // of each daemon
	rise  uint64   // the most that a daemon held beyond what it held before
	work  time.Duration
}

func (o outcome) String() string {
	state := "refused: " + o.error
	if o.done {
		state = "done"
	}
	return fmt.Sprintf("%s, rose by %s, %v of processor time: %s", formats(o.peaks), budget.Format(o.rise), o.work, state)
}

// rise is what a daemon may take while it refuses a job, and hold after one.
const rise = 64 << 20

// A limitedMesh is daemons and what they held before any job.
type limitedMesh struct {
	t     *testing.T
	nodes []*daemon
	idle  []uint64
}

func newLimitedMesh(t *testing.T, nodes []*daemon) *limitedMesh {
	m := &limitedMesh{t: t, nodes: nodes}
	for _, d := range nodes {
		m.idle = append(m.idle, d.held())
	}
	return m
}

// rest waits until all daemons have given back what a job took.
func (m *limitedMesh) rest(after any) {
	m.t.Helper()
	for i, d := range m.nodes {
		until(m.t, fmt.Sprintf("memory is given back after %v", after), func() bool { return d.held() < m.idle[i]+rise/2 })
	}
}

// try asks the first daemon for a job, waits for its end, and fails unless it is done within
// the bound or refused without taking memory, in one sentence about that.
func (m *limitedMesh) try(of trial, bound uint64) (o outcome) {
	m.t.Helper()
	addr := "unix:" + filepath.Join(m.nodes[0].dir, "hopmesh.sock")
	client, err := api.NewClient(addr)
	if err != nil {
		m.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	m.rest("the job before " + of.strategy)
	before, work := make([]uint64, len(m.nodes)), m.work()
	for i, d := range m.nodes {
		before[i] = d.held()
	}
	o.peaks = peaks(m.nodes, func() {
		args := append([]string{"train", "start", "--dataset", "g", "--epochs", "1", "--strategy", of.strategy, "--addr", addr}, strings.Fields(of.recipe)...)
		out, diag, code := hopmesh(m.t, args...)
		if code != 0 {
			o.error = strings.TrimSpace(diag)
			return
		}
		o.id = strings.TrimSpace(out)
		end, err := client.WatchJob(ctx, o.id, func(api.JobEvent) {})
		if err != nil {
			m.t.Errorf("%v: %v", of, err)
		}
		o.done, o.error = end.State == "done", end.Error
	})
	o.work = m.work() - work
	for i, p := range o.peaks {
		o.rise = max(o.rise, p-min(p, before[i]))
		if p > bound*115/100 {
			m.t.Errorf("%v took %s of %s: %v", of, budget.Format(p), budget.Format(bound), o)
		}
	}
	if o.id != "" {
		m.nodes[0].must(new(any), "train", "remove", o.id)
	}
	if !o.done && (o.rise > rise || o.id != "" && !strings.Contains(o.error, "memory") || strings.Contains(o.error, "\n")) {
		m.t.Errorf("%v: %v", of, o)
	}
	for _, d := range m.nodes {
		select {
		case <-d.done:
			m.t.Fatalf("%v: a daemon died: %s", of, lastLines(d.out.String(), 30))
		default:
		}
	}
	return o
}

// work returns how much processor time the daemons have taken.
func (m *limitedMesh) work() (sum time.Duration) {
	for _, d := range m.nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
		if err != nil {
			m.t.Fatal(err)
		}
		// utime and stime, in hundredths of a second, are the 14th and 15th field.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				m.t.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// peaks returns the most that each daemon's process holds while something is done.
func peaks(nodes []*daemon, do func()) []uint64 {
	list := make([]uint64, len(nodes))
	for i, n := range nodes {
		inner := do
		do = func() { list[i] = n.peak(inner) }
	}
	do()
	return list
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Under a real limit of a fifth more than --memory, jobs of each strategy are done or refused,
// no daemon dies, and all give back what they took.
func TestRealLimitsEndNoDaemon(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range realLimits {
		t.Run(limit.name, func(t *testing.T) {
			t.Parallel()
			if err := limit.check(); err != nil {
				t.Logf("this machine lets nobody make such a limit, so nothing is tried: %v", err)
				return
			}
			dir, ports := box(t), freePorts(t, 2)
			for i, memory := range limit.memory {
				nodes := meshIn(t, dir, ports, func(args []string) *exec.Cmd {
					return limit.under(t, memory*12/10, append([]string{path}, append(args, "--memory", strconv.FormatUint(memory, 10))...))
				})
				m := newLimitedMesh(t, nodes)
				if i == 0 {
					generatedOn(t, nodes[0], "--vertices", "100000", "--edges", "2000000", "--features", "64", "--classes", "8", "--shards", "16", "--replicas", "1")
				}
				ends := map[bool]int{}
				for _, of := range trials {
					o := m.try(of, memory)
					t.Logf("%s of %s, %v: %v", limit.name, budget.Format(memory), of, o)
					ends[o.done]++
				}
				m.rest("the last job")
				if ends[i == 0] < 2 {
					t.Errorf("%s: %d jobs were done, and %d refused", budget.Format(memory), ends[true], ends[false])
				}
				for _, d := range nodes {
					d.signal(os.Interrupt)
					d.exit()
				}
			}
		})
	}
}

// generatedOn makes the graph g, and waits until all its shards have an owner and a copy.
func generatedOn(t *testing.T, d *daemon, args ...string) {
	t.Helper()
	d.must(new(any), append([]string{"dataset", "generate", "g", "--kind", "sbm"}, args...)...)
	until(t, "the shards are placed", func() bool {
		var shown shownDataset
		d.must(&shown, "dataset", "show", "g")
		return !slices.ContainsFunc(shown.Shards, func(s shownShard) bool { return s.Owner == "" || len(s.Replicas) < 1 })
	})
}

// Jobs that don't fit are refused by each strategy and for each kind of model before memory is
// taken, however many layers they have.
func TestRefusalsTakeNothing(t *testing.T) {
	const bound = 300 << 20
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	nodes := meshIn(t, box(t), freePorts(t, 2), func(args []string) *exec.Cmd { return exec.Command(path, append(args, "--memory", "300MiB")...) })
	m := newLimitedMesh(t, nodes)
	generatedOn(t, nodes[0], "--vertices", "300000", "--edges", "6000000", "--features", "64", "--classes", "8", "--shards", "16", "--replicas", "1")
	alone := map[string]time.Duration{}
	for _, s := range strategies.Computed() {
		for _, shape := range []string{
			"gcn --layers 1000 --hidden 16", "sage --layers 1000 --hidden 16", "gcn --layers 3 --hidden 256", "gin --layers 3 --hidden 256", "gat --layers 2 --hidden 32",
		} {
			of := trial{s, "--model " + shape}
			o := m.try(of, bound)
			t.Logf("%v: %v", of, o)
			if s == "single" {
				alone[shape] = o.work
			}
			// Two seconds a node, and more where the machine is a slow one: p3 counts what all
			// nodes draw, on each.
			most := max(2*time.Second, alone[shape]*5/2) * time.Duration(len(nodes))
			if s == "single" {
				most = 2 * time.Second * time.Duration(len(nodes))
			} else if alone[shape] == 0 {
				t.Fatalf("%s comes before single, whose time bounds that of the others", s)
			}
			if o.done || o.work > most {
				t.Errorf("%v: %v; the most is %v", of, o, most)
			}
		}
	}
}

// freePorts returns UDP ports of loopback that nobody uses now.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ports = append(ports, c.LocalAddr().(*net.UDPAddr).Port)
	}
	return ports
}

// meshIn starts daemons on folders of a folder, which become a mesh or are one.
func meshIn(t *testing.T, dir string, ports []int, command func(args []string) *exec.Cmd) (nodes []*daemon) {
	t.Helper()
	enter := []string{"--bootstrap"}
	if _, err := os.Stat(filepath.Join(dir, "n1")); err == nil {
		enter = nil
	}
	for i, port := range ports {
		name := fmt.Sprintf("n%d", i+1)
		folder := filepath.Join(dir, name)
		d := launch(t, command(append([]string{"agent", "--data-dir", folder, "--name", name, "--listen", fmt.Sprintf("127.0.0.1:%d", port)}, enter...)), folder)
		nodes = append(nodes, d)
		if i == 0 && enter != nil {
			until(t, "the join line is printed", func() bool { return joinLine.MatchString(d.out.String()) })
			enter = strings.Fields(joinLine.FindStringSubmatch(d.out.String())[1])
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, d := range nodes {
				t.Logf("the end of a log:\n%s", lastLines(d.out.String(), 30))
			}
		}
	})
	for _, d := range nodes {
		until(t, "all are alive", func() bool {
			select {
			case <-d.done:
				t.Fatal("a daemon died")
			default:
			}
			alive, leaders, _ := d.census()
			return alive == len(ports) && leaders == 1
		})
	}
	return nodes
}
