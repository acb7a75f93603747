package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

const (
	look     = 20 * time.Millisecond
	patience = 3 * time.Minute
)

// mesh is a set of daemons of this machine, each with a directory of its own.
type mesh struct {
	dir   string
	nodes []*node
}

// node is one of them. It keeps its directory when its program changes.
type node struct {
	*api.Client
	name, dir string
	listen    string // its address, which it keeps

	process *exec.Cmd
	log     *log
	done    chan struct{} // closed when the process has ended
	failed  error         // how, set before that
}

// log collects what a process prints.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newMesh(dir string) (*mesh, error) { return &mesh{dir: dir}, os.Mkdir(dir, 0o700) }

// add starts a new node, which founds the mesh or joins it. It does not wait.
func (m *mesh) add(ctx context.Context, program string) (*node, error) {
	name := fmt.Sprintf("n%d", len(m.nodes)+1)
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &node{name: name, dir: filepath.Join(m.dir, name), listen: free.LocalAddr().String(), log: new(log)}
	if err := free.Close(); err != nil {
		return nil, err
	}
	if n.Client, err = api.NewClient("unix:" + filepath.Join(n.dir, "hopmesh.sock")); err != nil {
		return nil, err
	}
	args := []string{"--bootstrap"}
	if len(m.nodes) > 0 {
		t, err := m.nodes[0].CreateToken(ctx, time.Hour, 0)
		if err != nil {
			return nil, err
		}
		args = []string{"--join", m.nodes[0].listen, "--token", t.Token}
	}
	m.nodes = append(m.nodes, n)
	return n, n.start(program, args...)
}

// start starts the node as a program.
func (n *node) start(program string, args ...string) error {
	n.process = exec.Command(program, append([]string{
		"agent", "--data-dir", n.dir, "--name", n.name, "--listen", n.listen, "--device", "cpu", "--log-format", "text",
	}, args...)...)
	n.process.Stdout, n.process.Stderr = n.log, n.log
	if err := n.process.Start(); err != nil {
		return err
	}
	n.done = make(chan struct{})
	go func(done chan struct{}) {
		n.failed = n.process.Wait()
		close(done)
	}(n.done)
	return nil
}

// end stops the node by SIGTERM.
func (n *node) end(ctx context.Context) error {
	if err := n.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.done:
		return nil
	case <-ctx.Done():
		_ = n.process.Process.Kill()
		<-n.done
		return context.Cause(ctx)
	}
}

// ended reports whether the node's process has ended.
func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// again stops the node and starts it as a program on the same directory.
func (n *node) again(ctx context.Context, program string) error {
	if err := n.end(ctx); err != nil {
		return err
	}
	if err := n.start(program); err != nil {
		return err
	}
	return n.ready(ctx)
}

func (n *node) ready(ctx context.Context) error {
	return until(ctx, "node "+n.name+" is ready", func() (bool, error) {
		if n.ended() {
			return false, fmt.Errorf("node %s has ended (%w): %s", n.name, n.failed, last(n.log.String()))
		}
		s, err := n.Status(ctx)
		return err == nil && s.Ready, nil
	})
}

// refused waits until the node's process ends by itself, and returns the last line it printed.
func (n *node) refused(ctx context.Context) (string, error) {
	select {
	case <-n.done:
	case <-time.After(patience):
		return "", fmt.Errorf("node %s was not refused", n.name)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if n.failed == nil {
		return "", fmt.Errorf("node %s has ended without an error", n.name)
	}
	return last(n.log.String()), nil
}

// last returns the last line of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// until waits until a condition holds.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it takes too long"))
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
}

// stop stops all nodes.
func (m *mesh) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, n := range m.nodes {
		if n.process.Process != nil {
			errs = append(errs, n.end(ctx))
		}
		n.Close()
	}
	return errors.Join(errs...)
}

// ends returns the ends of all logs.
func (m *mesh) ends() string {
	var b strings.Builder
	for _, n := range m.nodes {
		lines := strings.Split(strings.TrimSpace(n.log.String()), "\n")
		for _, line := range lines[max(0, len(lines)-12):] {
			fmt.Fprintf(&b, "%s: %s\n", n.name, line)
		}
	}
	return b.String()
}

// grow adds nodes until there are so many, and waits for them.
func (m *mesh) grow(ctx context.Context, program string, nodes int) error {
	for len(m.nodes) < nodes {
		n, err := m.add(ctx, program)
		if err == nil {
			err = n.ready(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sees waits until a node sees all of these alive and nothing wrong.
func (m *mesh) sees(ctx context.Context, on *node, all []*node) error {
	return until(ctx, "all are well, says "+on.name, func() (bool, error) {
		list, err := on.Members(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // it is starting
		}
		for _, n := range all {
			if !slices.ContainsFunc(list, func(a api.Member) bool { return a.Name == n.name && a.Status == "alive" && a.Unlike == "" }) {
				return false, nil
			}
		}
		s, err := on.Status(ctx)
		return err == nil && len(s.Problems) == 0, nil
	})
}

// owned waits until so many nodes own shards of a dataset, and all copies have come.
func (m *mesh) owned(ctx context.Context, dataset string, owners int) error {
	return until(ctx, fmt.Sprintf("%d nodes own shards of dataset %s", owners, dataset), func() (bool, error) {
		d, err := m.nodes[0].Dataset(ctx, dataset)
		if err != nil {
			return false, nil //nolint:nilerr // it is starting
		}
		by := map[string]bool{}
		for _, s := range d.Shards {
			by[s.Owner] = true
		}
		return len(by) == owners && !by[""], nil
	})
}
