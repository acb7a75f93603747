package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

const (
	startPatience = 2 * time.Minute
	stopPatience  = 20 * time.Second
)

// A daemon is an agent in a process of its own.
type daemon struct {
	*api.Client
	name  string
	addr  string // of its API
	log   string // a file
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended
}

// A mesh is the daemons that run. One goroutine uses it.
type mesh struct {
	program string
	dir     string // of the data directories
	ports   []int
	daemons []*daemon
	groups  []string // control groups, by daemon
}

// A limit is what daemons are started under.
type limit struct {
	memory uint64 // of --memory; 0: none
	kind   string // of a real limit: data, group or none
	real   uint64
}

// launch starts daemons on data directories below dir, on fixed ports, and waits until
// all are ready. Without directories the first founds a mesh and the others join it.
func launch(ctx context.Context, program, dir string, ports []int, l limit) (m *mesh, err error) {
	m = &mesh{program: program, dir: dir, ports: ports}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.stop())
		}
	}()
	enter := []string(nil)
	if _, err := os.Stat(filepath.Join(dir, "n1")); errors.Is(err, fs.ErrNotExist) {
		enter = []string{"--bootstrap"}
	}
	for i, port := range ports {
		d, err := m.start(ctx, program, dir, i, port, l, enter)
		if err != nil {
			return m, err
		}
		m.daemons = append(m.daemons, d)
		if i == 0 && enter != nil {
			if enter, err = d.invite(ctx); err != nil {
				return m, err
			}
		}
	}
	for _, d := range m.daemons {
		if err := d.ready(ctx); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *mesh) start(ctx context.Context, program, dir string, i, port int, l limit, enter []string) (*daemon, error) {
	d := &daemon{name: fmt.Sprintf("n%d", i+1), ended: make(chan struct{})}
	folder := filepath.Join(dir, d.name)
	d.addr, d.log = "unix:"+filepath.Join(folder, "hopmesh.sock"), folder+".log"
	args := []string{
		program, "agent", "--data-dir", folder, "--name", d.name, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--device", "cpu", "--log-level", "info",
	}
	if l.memory > 0 {
		args = append(args, "--memory", fmt.Sprint(l.memory))
	}
	args = append(args, enter...)
	switch l.kind {
	case "data":
		args = append([]string{"prlimit", fmt.Sprintf("--data=%d", l.real)}, args...)
	case "group":
		group, err := newGroup(fmt.Sprintf("hm%d%s", os.Getpid(), d.name), l.real)
		if err != nil {
			return nil, err
		}
		m.groups = append(m.groups, group)
		// The shell moves itself into the group and then executes the program.
		args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(group, "cgroup.procs")}, args...)
	}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, fmt.Errorf("keep the log of %s: %w", d.name, err)
	}
	defer log.Close()
	d.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	d.cmd.WaitDelay = stopPatience
	if d.Client, err = api.NewClient(d.addr); err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", d.name, err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.ended)
	}()
	return d, nil
}

// invite waits until the founder is ready, and returns the arguments with which others
// join.
func (d *daemon) invite(ctx context.Context) ([]string, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	token, err := d.CreateToken(ctx, time.Hour, 0)
	if err != nil {
		return nil, err
	}
	members, err := d.Members(ctx)
	if err != nil {
		return nil, err
	}
	return []string{"--join", members[0].Address, "--token", token.Token}, nil
}

// ready waits until a daemon is in the plan and knows a leader.
func (d *daemon) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, errors.New("it takes too long"))
	defer cancel()
	for {
		if s, err := d.Status(ctx); err == nil && s.Ready {
			return nil
		}
		select {
		case <-d.ended:
			return d.gone()
		default:
		}
		if err := bench.Pause(ctx, every); err != nil {
			return fmt.Errorf("wait for %s: %w", d.name, err)
		}
	}
}

// gone says how a daemon ended.
func (d *daemon) gone() error {
	text, _ := os.ReadFile(d.log)
	return fmt.Errorf("%s ended: %w: %s", d.name, d.err, lastLine(string(text)))
}

// lastLine returns the end of a log, on one line.
func lastLine(log string) string {
	const most = 300
	// A Go program that runs out says so first, before all its goroutines.
	for _, sign := range []string{"fatal error:", "panic:"} {
		if at := strings.Index(log, sign); at >= 0 {
			line, _, _ := strings.Cut(log[at:], "\n")
			return line
		}
	}
	lines := strings.Split(strings.TrimSpace(log), "\n")
	line := lines[len(lines)-1]
	return line[max(0, len(line)-most):]
}

// anyEnds calls dead with the first daemon that ends before ctx.
func (m *mesh) anyEnds(ctx context.Context, dead func(*daemon)) {
	for _, d := range m.daemons {
		go func() {
			select {
			case <-d.ended:
				dead(d)
			case <-ctx.Done():
			}
		}()
	}
}

func (m *mesh) pids() (list []int) {
	for _, d := range m.daemons {
		list = append(list, d.cmd.Process.Pid)
	}
	return list
}

// forecasts returns what each daemon's log said last that a job takes.
func (m *mesh) forecasts() (list []uint64) {
	for _, d := range m.daemons {
		text, err := os.ReadFile(d.log)
		if err != nil {
			text = nil
		}
		list = append(list, forecastIn(string(text)))
	}
	return list
}

// kill ends all daemons at once.
func (m *mesh) kill() {
	for _, d := range m.daemons {
		_ = d.cmd.Process.Kill() // it may have ended
	}
}

// restart ends a daemon by a signal, waits for its end, and starts it again on its directory with another
// bound of memory. It does not wait until the daemon is ready.
func (m *mesh) restart(ctx context.Context, i int, by syscall.Signal, memory uint64) error {
	d := m.daemons[i]
	_ = d.cmd.Process.Signal(by) // it may have ended
	select {
	case <-d.ended:
	case <-time.After(stopPatience):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	d.Close()
	again, err := m.start(ctx, m.program, m.dir, i, m.ports[i], limit{memory: memory}, nil)
	if err != nil {
		return err
	}
	m.daemons[i] = again
	return nil
}

// stop ends all daemons, waits for them and removes their control groups.
func (m *mesh) stop() error {
	for _, d := range m.daemons {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	patience := time.After(stopPatience)
	for _, d := range m.daemons {
		select {
		case <-d.ended:
		case <-patience:
			m.kill()
			<-d.ended
		}
		d.Close()
	}
	var errs []error
	for _, g := range m.groups {
		errs = append(errs, os.Remove(g))
	}
	m.groups = nil
	return errors.Join(errs...)
}

// roots are where control groups with memory are, of version 2 and 1, with their limits'
// files.
var roots = []struct{ dir, limit, check string }{
	{"/sys/fs/cgroup", "memory.max", "/sys/fs/cgroup/cgroup.controllers"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
}

// newGroup makes a control group with a limit of memory.
func newGroup(name string, bytes uint64) (string, error) {
	for _, r := range roots {
		if text, err := os.ReadFile(r.check); err != nil || r.limit == "memory.max" && !strings.Contains(string(text), "memory") {
			continue
		}
		dir := filepath.Join(r.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the kernel's
			return "", fmt.Errorf("make a control group: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, r.limit), []byte(fmt.Sprint(bytes)), 0o600); err != nil {
			return "", errors.Join(fmt.Errorf("limit a control group: %w", err), os.Remove(dir))
		}
		return dir, nil
	}
	return "", errors.New("this machine has no control groups for memory")
}

// A prepared mesh is data directories with ports and graphs, which cells copy.
type prepared struct {
	Ports  []int            `json:"ports"`
	Graphs map[string]known `json:"graphs"`
}

// known is what is kept of a graph.
type known struct {
	Request string   `json:"request"` // digest of how it was generated
	Text    string   `json:"text"`
	Import  Measured `json:"import"`
}

// prepare returns a folder's data directories with a graph in them, which it makes if
// they are not kept. memory is what daemons may use meanwhile; 0: no bound.
func prepare(ctx context.Context, program, folder string, nodes int, g graphSpec, memory uint64) (p prepared, err error) {
	file := filepath.Join(folder, "mesh.json")
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.RemoveAll(folder); err != nil {
			return p, fmt.Errorf("clear a half-made mesh: %w", err)
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return p, fmt.Errorf("make a folder for a mesh: %w", err)
		}
		if p.Ports, err = freePorts(nodes); err != nil {
			return p, err
		}
		p.Graphs = map[string]known{}
	case err != nil:
		return p, fmt.Errorf("read a kept mesh: %w", err)
	default:
		if err := json.Unmarshal(text, &p); err != nil {
			return p, fmt.Errorf("%s is no kept mesh: remove it: %w", file, err)
		}
	}
	if k, ok := p.Graphs[g.name]; ok && k.Request == g.digest() {
		return p, nil
	}
	k, err := bring(ctx, program, folder, p.Ports, g, memory)
	if err != nil {
		return p, err
	}
	p.Graphs[g.name] = k
	if text, err = json.Marshal(p); err != nil {
		return p, fmt.Errorf("keep a mesh: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return p, fmt.Errorf("keep a mesh: %w", err)
	}
	return p, nil
}

// bring generates a graph on the first of some daemons and waits until its shards are
// where they belong.
func bring(ctx context.Context, program, folder string, ports []int, g graphSpec, memory uint64) (k known, err error) {
	m, err := launch(ctx, program, folder, ports, limit{memory: memory})
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	first := m.daemons[0]
	list, err := first.Datasets(ctx)
	if err != nil {
		return k, err
	}
	if slices.ContainsFunc(list, func(d api.DatasetSummary) bool { return d.Name == g.name }) { // half-made, or another
		if err := first.RemoveDataset(ctx, g.name, true); err != nil {
			return k, err
		}
	}
	k.Request = g.digest()
	k.Import.Bound = memory
	if k.Import.Idle, err = reading(m); err != nil {
		return k, err
	}
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	m.anyEnds(inner, func(d *daemon) { end(d.gone()) })
	w := watch(inner, m.pids(), far(memory), func(why error) {
		end(why)
		m.kill()
	})
	begin := time.Now()
	d, err := first.GenerateDataset(inner, g.request, func(api.DatasetEvent) {})
	for err == nil && d.Stage != "ready" {
		if err = bench.Pause(inner, 200*time.Millisecond); err == nil {
			d, err = first.Dataset(inner, g.name)
		}
	}
	k.Import.Seconds = time.Since(begin).Seconds()
	k.Import.Peak = w.end()
	if err != nil {
		return k, fmt.Errorf("generate %s: %w", g.name, errors.Join(context.Cause(inner), err))
	}
	if d.Edges < g.atLeast {
		return k, fmt.Errorf("%s has %d stored edges, and must have %d", g.name, d.Edges, g.atLeast)
	}
	var bytes uint64
	for _, s := range d.Shards {
		bytes += s.Bytes
	}
	k.Text = fmt.Sprintf("%s: %d vertices, %d stored edges, %d features as %s, %d shards of %s together, %.0f %% of the edges cut",
		g.name, d.Vertices, d.Edges, d.Features, d.DType, len(d.Shards), size(bytes), 100*d.EdgeCutShare)
	return k, nil
}

// freePorts returns UDP ports of loopback that nobody uses now.
func freePorts(n int) (ports []int, err error) {
	for range n {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer c.Close()
		ports = append(ports, c.LocalAddr().(*net.UDPAddr).Port)
	}
	return ports, nil
}

// copyMesh copies data directories. Shards, which never change, are linked.
func copyMesh(from, to string) error {
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular(), strings.HasSuffix(path, ".log"), e.Name() == "lock":
			return nil
		case strings.Contains(relative, "datasets"+string(filepath.Separator)):
			return os.Link(path, target)
		}
		return copyFile(path, target)
	})
	if err != nil {
		return fmt.Errorf("copy a mesh: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		return errors.Join(err, dst.Close())
	}
	return dst.Close()
}
