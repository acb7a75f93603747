// Package fleet runs several complete nodes in this process, on loopback with disks of
// their own, for the demo and for measurements. It owns their sockets, so that it can
// kill a node without a goodbye.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
)

// Fleet is a set of nodes in this process. It is not safe for concurrent use.
type Fleet struct {
	Nodes  []*Node
	Device string // used by nodes launched from now on

	dir, version string
	token        string
}

// Node is a node of a Fleet.
type Node struct {
	Name string

	node   *node.Node
	conn   *net.UDPConn
	cancel context.CancelFunc
	done   chan error
	dead   bool
}

// New makes an empty fleet with its disks in dir, which computes on the CPU.
func New(dir, version string) *Fleet { return &Fleet{Device: "cpu", dir: dir, version: version} }

// Launch starts the next node. The first node founds the mesh, and Launch waits for it.
// The others join the mesh, and Launch does not wait.
func (f *Fleet) Launch(ctx context.Context) (*Node, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open a UDP port on loopback: %w", err)
	}
	name := fmt.Sprintf("n%d", len(f.Nodes)+1)
	o := node.Options{
		DataDir: filepath.Join(f.dir, name), Name: name, Version: f.version, Device: f.Device, Conn: conn, Log: slog.New(slog.DiscardHandler),
		// They share one machine, so measured speeds would differ by noise only.
		Speed: 1000,
	}
	if len(f.Nodes) == 0 {
		o.Bootstrap = true
	} else {
		o.Join, o.Token = []string{f.Nodes[0].Addr()}, f.token
	}
	n, err := node.New(o)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	// Not derived from ctx: Stop stops the nodes in order.
	life, cancel := context.WithCancel(context.Background())
	s := &Node{Name: name, node: n, conn: conn, cancel: cancel, done: make(chan error, 1)}
	go func() { s.done <- n.Run(life) }()
	f.Nodes = append(f.Nodes, s)
	if len(f.Nodes) > 1 {
		return s, nil
	}
	if err := f.Until(ctx, name+" leads", f.AllReady); err != nil {
		return nil, err
	}
	t, err := s.API().CreateToken(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	f.token = t.Token
	return s, nil
}

// API returns the node's backend.
func (n *Node) API() api.Backend { return n.node.Backend() }

// Addr returns the address of the node's socket.
func (n *Node) Addr() string { return n.conn.LocalAddr().String() }

// Status returns the node's own status, or a zero one if it can't answer.
func (n *Node) Status() api.Status {
	s, err := n.API().Status(context.Background())
	if n.dead || err != nil {
		return api.Status{}
	}
	return s
}

// Members returns the members as the node sees them.
func (n *Node) Members() []api.Member {
	list, err := n.API().Members(context.Background())
	if n.dead || err != nil {
		return nil
	}
	return list
}

// Voters returns the number of voters, the leader included, as the node sees it.
func (n *Node) Voters() int {
	count := 0
	for _, m := range n.Members() {
		if m.Role != "nonvoter" {
			count++
		}
	}
	return count
}

// AllReady reports whether every node that was not killed is in the plan and knows
// a leader.
func (f *Fleet) AllReady() bool {
	for _, n := range f.Nodes {
		if !n.dead && !n.Status().Ready {
			return false
		}
	}
	return true
}

// Leader returns the leader's name from any node that was not killed, or "".
func (f *Fleet) Leader() string {
	for _, n := range f.Nodes {
		if l := n.Status().Leader; l != "" {
			return l
		}
	}
	return ""
}

// Kill closes a node's socket first, so that it can't say goodbye, as with kill -9.
func (f *Fleet) Kill(name string) {
	for _, n := range f.Nodes {
		if n.Name == name {
			_ = n.conn.Close()
			n.dead = true
			n.cancel()
		}
	}
}

// Until waits until the condition holds, at most a minute.
func (f *Fleet) Until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		for _, n := range f.Nodes {
			select {
			case err := <-n.done:
				n.done <- err
				if !n.dead {
					return fmt.Errorf("node %s ended while waiting until %s: %w", n.Name, what, err)
				}
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting until %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// Stop stops all nodes and waits for them.
func (f *Fleet) Stop() error {
	var errs []error
	for _, n := range f.Nodes {
		n.cancel()
	}
	for _, n := range f.Nodes {
		if err := <-n.done; err != nil && !n.dead {
			errs = append(errs, fmt.Errorf("stop %s: %w", n.Name, err))
		}
		_ = n.conn.Close()
	}
	return errors.Join(errs...)
}
