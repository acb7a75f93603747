package shape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// Crew is the nodes of one mesh, each a process of its own at its site. One goroutine
// uses it.
type Crew struct {
	Nodes []*Process

	field        *Field
	program, dir string
}

// Process is one node of a Crew.
type Process struct {
	Name   string
	Folder string // its data directory; its log is beside it, as Folder.log
	Addr   string // of its API, as --addr takes it
	API    *api.Client

	listen string // its port, once it is ready
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // how it ended
}

const (
	startPatience = time.Minute
	stopPatience  = 30 * time.Second
	tokenLife     = time.Hour
	port          = 7946
)

// Start runs a node of the hopmesh program at each site, with their disks in dir. The
// first node founds a mesh and the others join it. All are ready when Start returns. When
// ctx ends, the nodes are asked to stop; Stop waits for that.
func (f *Field) Start(ctx context.Context, program, dir string) (c *Crew, err error) {
	return f.StartSome(ctx, len(f.sites), program, dir)
}

// StartSome is Start of nodes at the first sites. Others may Begin later.
func (f *Field) StartSome(ctx context.Context, nodes int, program, dir string) (c *Crew, err error) {
	c = &Crew{field: f, program: program, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	enter := []string{"--bootstrap"}
	for i := range nodes {
		if err := c.Begin(ctx, i, enter...); err != nil {
			return c, err
		}
		if i > 0 {
			continue
		}
		if enter, err = c.Nodes[0].invite(ctx); err != nil {
			return c, err
		}
	}
	for _, p := range c.Nodes {
		if err := p.ready(ctx); err != nil {
			return c, err
		}
	}
	return c, nil
}

// run starts one node. It listens on the port of the process before, if there was one.
func (f *Field) run(ctx context.Context, i int, before *Process, program, folder string, enter []string) (*Process, error) {
	p := &Process{Name: filepath.Base(folder), Folder: folder, ended: make(chan struct{})}
	args := []string{"agent"}
	if own := f.Conn(i); own != (Link{}) {
		args = []string{"bench", "node", "--rate", strconv.FormatUint(own.Rate, 10), "--delay", own.Delay.String()}
	}
	listen := strconv.Itoa(port)
	switch {
	case f.hub != nil:
	case before != nil && before.listen != "":
		listen = before.listen
	default:
		listen = "0" // any port: they share this machine's
	}
	args = append(args, "--data-dir", folder, "--name", p.Name, "--listen", net.JoinHostPort(f.Addr(i).String(), listen),
		"--device", "cpu", "--log-level", "warn")
	log, err := os.OpenFile(folder+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // after a restart it goes on
	if err != nil {
		return nil, fmt.Errorf("keep the log of %s: %w", p.Name, err)
	}
	defer log.Close()
	p.cmd = f.Command(ctx, i, program, append(args, enter...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopPatience
	p.Addr = "unix:" + filepath.Join(folder, "hopmesh.sock")
	if p.API, err = api.NewClient(p.Addr); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// invite waits until the founder is ready, and returns the arguments with which others
// join.
func (p *Process) invite(ctx context.Context) ([]string, error) {
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	token, err := p.API.CreateToken(ctx, tokenLife, 0)
	if err != nil {
		return nil, err
	}
	members, err := p.API.Members(ctx)
	if err != nil {
		return nil, err
	}
	return []string{"--join", members[0].Address, "--token", token.Token}, nil
}

// ready waits until a node is in the plan.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, errors.New("it takes too long"))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := p.API.Status(ctx); err == nil && s.Ready {
			return p.listens(ctx)
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended before it was ready: %w; its log says: %s", p.Name, p.err, p.Said())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.Name, context.Cause(ctx))
		}
	}
}

// listens notes the port of a node that is ready: who is started again comes back there.
func (p *Process) listens(ctx context.Context) error {
	members, err := p.API.Members(ctx)
	for _, m := range members {
		if m.Name == p.Name && m.Address != "" {
			_, p.listen, err = net.SplitHostPort(m.Address)
		}
	}
	return err
}

// Said returns the end of the node's log.
func (p *Process) Said() string {
	const most = 1000
	b, err := os.ReadFile(p.Folder + ".log")
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process with SIGKILL.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// Signal sends the process a signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Begin starts a node on its folder, again or for the first time, with more arguments for the
// agent, and does not wait until it is ready. One that runs must have ended. Nodes begin for the
// first time in the order of their sites.
func (c *Crew) Begin(ctx context.Context, node int, enter ...string) error {
	folder := filepath.Join(c.dir, fmt.Sprint("n", node+1))
	var before *Process
	if node < len(c.Nodes) {
		before = c.Nodes[node]
		before.API.Close()
	}
	p, err := c.field.run(ctx, node, before, c.program, folder, enter)
	if err != nil {
		return err
	}
	if node < len(c.Nodes) {
		c.Nodes[node] = p
	} else {
		c.Nodes = append(c.Nodes, p)
	}
	return nil
}

// Restart waits for the end of a node that was sent a signal to end, starts it again on its
// folder, and returns when it is ready.
func (c *Crew) Restart(ctx context.Context, node int) error {
	old := c.Nodes[node]
	select {
	case <-old.ended:
	case <-time.After(stopPatience):
		return fmt.Errorf("%s does not end; its log says: %s", old.Name, old.Said())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.Begin(ctx, node); err != nil {
		return err
	}
	return c.Nodes[node].ready(ctx)
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns how the process ended: nil while it runs, and if that was in peace.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return p.err
	default:
		return nil
	}
}

// Signalled reports whether a signal that it does not handle has ended the process.
func (p *Process) Signalled() bool {
	exit, ok := errors.AsType[*exec.ExitError](p.Err())
	return ok && !exit.Exited()
}

// Pace changes the rate of all links while the nodes run; 0 removes the limit.
func (c *Crew) Pace(ctx context.Context, rate uint64) error { return c.field.pace(ctx, rate) }

// Stop stops all running nodes and waits for them.
func (c *Crew) Stop() error {
	var errs []error
	for _, p := range c.Nodes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, p := range c.Nodes {
		select {
		case <-p.ended:
		case <-time.After(stopPatience):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		p.API.Close()
		// Those that a signal ended were killed, or interrupted as this process was.
		if exit, ok := errors.AsType[*exec.ExitError](p.err); ok && exit.Exited() {
			errs = append(errs, fmt.Errorf("%s ended by itself: %w; its log says: %s", p.Name, p.err, p.Said()))
		}
	}
	return errors.Join(errs...)
}
