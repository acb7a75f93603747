package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/shape"
)

// python is what runs the frameworks.
type python struct {
	program string // of an environment that has PyTorch and DGL
	script  string
}

// limit is how long one run may take.
const limit = 10 * time.Minute

// An event is a line of the script's.
type event struct {
	Event   string  `json:"event"`
	Epoch   int     `json:"epoch"`
	Seconds float64 `json:"seconds"`
	Test    float64 `json:"test"`
}

// parse returns the event in a line, before which the name of a node may stand. Other lines are what
// libraries print.
func parse(line string) (e event, ok bool, err error) {
	before, text, ok := strings.Cut(line, "@ ")
	if !ok || before != "" && !strings.HasSuffix(before, ": ") {
		return e, false, nil
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, false, fmt.Errorf("read the line %q of the script: %w", text, err)
	}
	return e, true, nil
}

// check fails unless the environment has what the script imports.
func (p python) check(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, p.program, "-c", "import dgl, torch, safetensors").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s can't import DGL and PyTorch, so there is nothing to compare with: run `make .tools/peers` where packages can be fetched: %w %s", p.program, err, last(out))
	}
	return nil
}

// last returns the last line of an output.
func last(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// ask runs a command of the script outside of all sites and returns its last event.
func (p python) ask(ctx context.Context, args ...string) (e event, err error) {
	cmd := exec.CommandContext(ctx, p.program, append([]string{p.script}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONWARNINGS=ignore")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return e, fmt.Errorf("%s by Python: %w: %s", args[0], err, last(said.Bytes()))
	}
	for line := range strings.Lines(string(out)) {
		if got, ok, err := parse(line); err != nil {
			return e, err
		} else if ok {
			e = got
		}
	}
	if e.Event == "" {
		return e, fmt.Errorf("%s by Python reported nothing", args[0])
	}
	return e, nil
}

// A job is one training by a framework.
type job struct {
	cell
	parts   string // the folder with whole.pt and the partitions
	classes int
	weights string // the file to write the model to
	logs    string // the folder for what ranks print
}

// arguments are the script's.
func (j job) arguments(machines string) []string {
	graph := filepath.Join(j.parts, "whole.pt")
	if j.side.framework == "distdgl" {
		graph = filepath.Join(j.parts, j.side.cut, "g.json")
	}
	args := []string{
		j.side.framework, "--graph", graph, "--machines", machines, "--weights", j.weights, "--hidden", strconv.Itoa(j.hidden), "--classes", strconv.Itoa(j.classes),
		"--fanouts", comma(j.fanouts), "--batch", strconv.Itoa(j.batch() / j.nodes), "--epochs", strconv.Itoa(j.epochs), "--seed", strconv.Itoa(seed), "--rate", fmt.Sprint(rate),
	}
	if j.side.loop {
		args = append(args, "--loop")
	}
	return args
}

func comma(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// environment is that of one rank, as the frameworks' own launchers set it.
func (j job) environment(rank int, first, machines string) []string {
	return []string{
		"PYTHONWARNINGS=ignore", "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0", "MASTER_ADDR=" + first, "MASTER_PORT=29600",
		fmt.Sprint("WORLD_SIZE=", j.nodes), fmt.Sprint("RANK=", rank),
		"DGL_NUM_SAMPLER=0", "DGL_NUM_SERVER=1", fmt.Sprint("DGL_NUM_CLIENT=", j.nodes), "DGL_CONF_PATH=" + filepath.Join(j.parts, j.side.cut, "g.json"),
		"DGL_IP_CONFIG=" + machines, "DGL_GRAPH_FORMAT=csc", "DGL_KEEP_ALIVE=0",
	}
}

// private runs a program in a mount namespace with a /dev/shm of its own: DistDGL's names in it are
// the same on all machines.
var private = []string{"-m", "sh", "-c", `mount -t tmpfs tmpfs /dev/shm && exec "$@"`, "sh"}

// train trains on all sites of a field.
func (p python) train(ctx context.Context, field *shape.Field, j job) (r run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	defer cancel()
	machines := filepath.Join(j.logs, "machines.txt")
	var list strings.Builder
	for i := range j.nodes {
		_, _ = fmt.Fprintf(&list, "%s 30050\n", field.Addr(i))
	}
	if err := os.WriteFile(machines, []byte(list.String()), 0o600); err != nil {
		return r, err
	}
	err = follow(ctx, j.nodes, j.logs, &r, func(all *ranks) ([]int, func() []int, error) {
		for i := range j.nodes {
			args := append(append(slices.Clip(private), p.program, p.script), j.arguments(machines)...)
			cmd := field.Command(ctx, i, "unshare", args...)
			cmd.Env = append(os.Environ(), j.environment(i, field.Addr(0).String(), machines)...)
			if err := all.start(cmd, i, j.logs); err != nil {
				return nil, nil, err
			}
		}
		return all.pids, func() []int { return groups(all.pids) }, nil
	})
	return r, err
}

// follow starts a process on each node and meters what they report, until they have ended. Start
// returns a process in each node's namespace, and what returns all that count.
func follow(ctx context.Context, nodes int, logs string, r *run, start func(*ranks) ([]int, func() []int, error)) (err error) {
	all := newRanks(nodes)
	defer func() {
		if err != nil {
			cause := context.Cause(ctx)
			all.kill()
			err = errors.Join(err, cause, all.complaint(logs))
		}
	}()
	in, count, err := start(all)
	if err != nil {
		return err
	}
	m := newMeter(ctx, in, count)
	defer m.halt()
	if err := all.follow(ctx, m, r); err != nil {
		return err
	}
	return all.wait(ctx)
}

// ranks are the processes of one training.
type ranks struct {
	pids   []int // leaders of process groups
	lines  chan said
	ended  chan end
	finish int // how many have ended
}

// said is an event of one rank.
type said struct {
	rank int
	event
	err error
}

// end is how a rank has ended.
type end struct {
	rank int
	err  error
}

func newRanks(n int) *ranks { return &ranks{lines: make(chan said), ended: make(chan end, n)} }

// start starts one rank, whose log is in a folder.
func (a *ranks) start(cmd *exec.Cmd, rank int, logs string) error {
	file, err := os.Create(filepath.Join(logs, fmt.Sprint("rank", rank, ".log")))
	if err != nil {
		return err
	}
	cmd.Stderr = file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a server ends with its trainer
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start rank %d: %w", rank, err), file.Close())
	}
	a.pids = append(a.pids, cmd.Process.Pid)
	go func() {
		a.read(rank, out, file)
		a.ended <- end{rank, errors.Join(cmd.Wait(), file.Close())}
	}()
	return nil
}

// read passes events on and keeps all else in the log.
func (a *ranks) read(rank int, from io.Reader, log io.Writer) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		e, ok, err := parse(lines.Text())
		if ok || err != nil {
			a.lines <- said{rank, e, err}
			continue
		}
		_, _ = fmt.Fprintln(log, lines.Text())
	}
}

// follow reads events until all ranks have trained, and meters each epoch.
func (a *ranks) follow(ctx context.Context, m *meter, r *run) error {
	trained := map[int]bool{}
	for len(trained) < len(a.pids) {
		select {
		case s := <-a.lines:
			switch {
			case s.err != nil:
				return s.err
			case s.Event == "trained":
				trained[s.rank] = true
			case s.Event == "epoch" && s.Epoch < 1:
				return fmt.Errorf("rank %d reports epoch %d", s.rank, s.Epoch)
			case s.Event == "epoch":
				slowest(r, s.event)
			}
			if s.rank == 0 && (s.Event == "ready" || s.Event == "epoch") { // behind a barrier of all
				if err := m.mark(); err != nil {
					return err
				}
			}
		case e := <-a.ended:
			a.finish++
			if !trained[e.rank] {
				return errors.Join(fmt.Errorf("rank %d ended before it had trained", e.rank), e.err)
			}
			if err := e.error(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	m.end(r)
	return nil
}

// slowest keeps the longest time of an epoch over all ranks.
func slowest(r *run, e event) {
	for len(r.Seconds) < e.Epoch {
		r.Seconds = append(r.Seconds, 0)
	}
	r.Seconds[e.Epoch-1] = max(r.Seconds[e.Epoch-1], e.Seconds)
}

func (e end) error() error {
	if e.err != nil {
		return fmt.Errorf("rank %d failed after it had trained: %w", e.rank, e.err)
	}
	return nil
}

// wait waits until all ranks have ended.
func (a *ranks) wait(ctx context.Context) error {
	for a.finish < len(a.pids) {
		select {
		case e := <-a.ended:
			a.finish++
			if err := e.error(); err != nil {
				return err
			}
		case <-a.lines:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// kill ends all ranks and waits for them.
func (a *ranks) kill() {
	for _, pid := range a.pids {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
	}
	for a.finish < len(a.pids) {
		select {
		case <-a.ended:
			a.finish++
		case <-a.lines:
		}
	}
}

// complaint returns the last line that a rank has printed.
func (a *ranks) complaint(logs string) error {
	for i := range a.pids {
		text, err := os.ReadFile(filepath.Join(logs, fmt.Sprint("rank", i, ".log")))
		if line := last(text); err == nil && line != "" {
			return fmt.Errorf("rank %d says: %s", i, line)
		}
	}
	return nil
}
