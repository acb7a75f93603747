// Package nodetest runs whole meshes inside one test, in virtual time or over
// loopback, and does to them what users fear: kills, restarts, partitions, slow
// and lossy links. It is for tests only and holds no product code.
package nodetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh/meshtest"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
)

// A Cluster is the nodes of one test.
type Cluster struct {
	T       testing.TB
	Network *meshtest.Network // nil over loopback
	Nodes   []*Instance

	dir string
	log slog.Handler
}

// An Instance is one place where a node runs, stops and runs again.
type Instance struct {
	Name string
	// Set before Start to change what the next start does.
	Options node.Options

	cluster *Cluster
	ip      string
	port    int
	stores  consensus.Stores // survive restarts; empty over loopback: disk
	node    *node.Node
	conn    net.PacketConn
	cancel  context.CancelCauseFunc
	done    chan struct{}
	err     error
}

// Virtual runs f with a mesh of n nodes in virtual time. Everything it starts is
// stopped before it returns.
func Virtual(t *testing.T, n int, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{T: t, Network: meshtest.NewNetwork(uint64(n)), dir: dir, log: handler(t)}
		// memberlist's probes outlive its shutdown by their timeout, and the bubble
		// must not end before them.
		defer time.Sleep(time.Minute)
		defer c.stopAll()
		c.Grow(n)
		f(t, c)
	})
}

// Loopback is Virtual over real sockets, disks and clocks.
func Loopback(t *testing.T, n int, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hopmesh") //nolint:usetesting // its path would be too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &Cluster{T: t, dir: dir, log: handler(t)}
	defer c.stopAll()
	c.Grow(n)
	f(t, c)
}

// handler shows the nodes' logs when HOPMESH_TEST_LOG is set: they are long.
func handler(t testing.TB) slog.Handler {
	if os.Getenv("HOPMESH_TEST_LOG") == "" {
		return slog.DiscardHandler
	}
	return slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})
}

// Grow adds nodes: the first of all founds the mesh, the others join it, all at
// once. It returns when all are ready.
func (c *Cluster) Grow(n int) []*Instance {
	c.T.Helper()
	var fresh []*Instance
	for range n {
		i := c.Add()
		fresh = append(fresh, i)
		if len(c.Nodes) == 1 {
			i.Options.Bootstrap = true
			i.Start()
			i.WaitReady()
			continue
		}
	}
	if len(c.Nodes) > 1 {
		first := c.AnyReady()
		token := first.Token()
		for _, i := range fresh {
			if i.node == nil {
				i.Options.Join, i.Options.Token = []string{first.Addr()}, token
				i.Start()
			}
		}
	}
	for _, i := range fresh {
		i.WaitReady()
		i.Options.Bootstrap, i.Options.Join, i.Options.Token = false, nil, ""
	}
	return fresh
}

// Add prepares one more node without starting it.
func (c *Cluster) Add() *Instance {
	k := len(c.Nodes)
	i := &Instance{Name: fmt.Sprintf("n%d", k), cluster: c, ip: fmt.Sprintf("10.0.%d.%d", k/200, k%200+1), port: 7946}
	if c.Network == nil {
		i.ip, i.port = "127.0.0.1", 0
	}
	i.Reset()
	c.Nodes = append(c.Nodes, i)
	return i
}

// Reset makes the instance that of a machine with an empty disk.
func (i *Instance) Reset() {
	dir := filepath.Join(i.cluster.dir, i.Name)
	if err := os.RemoveAll(dir); err != nil {
		i.cluster.T.Fatal(err)
	}
	i.Options = node.Options{DataDir: dir, Name: i.Name, Version: "test", Device: "cpu", Log: slog.New(i.cluster.log)}
	i.Options.NoAPI = i.cluster.Network != nil
	i.Forget()
}

// Forget empties the log under Raft where it is in memory, as a node that left
// empties its disk.
func (i *Instance) Forget() {
	if i.cluster.Network == nil {
		return
	}
	i.stores = consensus.MemoryStores()
	i.Options.Stores = func() (consensus.Stores, error) { return i.stores, nil }
}

// Start runs the node until it is killed or stopped.
func (i *Instance) Start() {
	t := i.cluster.T
	t.Helper()
	if i.done != nil {
		t.Fatalf("%s runs already", i.Name)
	}
	if network := i.cluster.Network; network != nil {
		i.conn = network.Listen(i.ip, i.port)
	} else {
		udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(i.ip), Port: i.port})
		if err != nil {
			t.Fatal(err)
		}
		i.conn, i.port = udp, udp.LocalAddr().(*net.UDPAddr).Port
	}
	i.Options.Conn = i.conn
	n, err := node.New(i.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	i.node, i.cancel, i.done, i.err = n, cancel, make(chan struct{}), nil
	go func() {
		defer close(i.done)
		i.err = n.Run(ctx)
	}()
}

// Stop ends the node as SIGTERM does.
func (i *Instance) Stop() error {
	if i.done == nil {
		return nil
	}
	i.cancel(errStopped)
	return i.ended()
}

// Kill takes the node off the network without a word, as kill -9 or a power cut
// does, and then clears away what is left of it.
func (i *Instance) Kill() {
	if i.done == nil {
		return
	}
	_ = i.conn.Close()
	i.cancel(errStopped)
	_ = i.ended()
}

// Exited waits until the node ends by itself and returns what Run returned.
func (i *Instance) Exited(within time.Duration) error {
	i.cluster.T.Helper()
	select {
	case <-i.done:
		return i.ended()
	case <-time.After(within):
		i.cluster.T.Fatalf("%s still runs after %s", i.Name, within)
		return nil
	}
}

func (i *Instance) ended() error {
	<-i.done
	_ = i.conn.Close()
	i.node, i.done = nil, nil
	return i.err
}

var errStopped = errors.New("stopped by the test")

// Restart starts a killed or stopped node again, with its disk, at its address.
func (i *Instance) Restart() {
	i.cluster.T.Helper()
	i.Start()
}

// Recover makes these ids the only voters on this node, which must not run.
func (i *Instance) Recover(ids []string) {
	t := i.cluster.T
	t.Helper()
	file := filepath.Join(i.cluster.dir, i.Name+".voters")
	if err := os.WriteFile(file, []byte(strings.Join(ids, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Recover(i.Options, file); err != nil {
		t.Fatal(err)
	}
}

// Move gives the node a new address for its next start.
func (i *Instance) Move() {
	if i.cluster.Network == nil {
		i.port = 0
		return
	}
	i.port++
}

// Running says whether the node was started and not killed or stopped since.
func (i *Instance) Running() bool { return i.done != nil }

// IP is the node's address, for the Network's faults.
func (i *Instance) IP() string { return i.ip }

// Addr is where the node's socket is.
func (i *Instance) Addr() string { return fmt.Sprintf("%s:%d", i.ip, i.port) }

// API is the node's backend, without HTTP.
func (i *Instance) API() api.Backend { return i.node.Backend() }

// Status is what the node says of itself; empty if it does not run.
func (i *Instance) Status() api.Status {
	if i.node == nil {
		return api.Status{}
	}
	s, err := i.API().Status(context.Background())
	if err != nil {
		return api.Status{}
	}
	return s
}

// Plan is the plan that the node follows; empty if there is none.
func (i *Instance) Plan() api.Plan {
	if i.node == nil {
		return api.Plan{}
	}
	p, err := i.API().Plan(context.Background())
	if err != nil {
		return api.Plan{}
	}
	return p
}

// Members is the node's table of members.
func (i *Instance) Members() []api.Member {
	if i.node == nil {
		return nil
	}
	list, err := i.API().Members(context.Background())
	if err != nil {
		return nil
	}
	return list
}

// Token makes a join token.
func (i *Instance) Token() string {
	i.cluster.T.Helper()
	t, err := i.API().CreateToken(context.Background(), 0)
	if err != nil {
		i.cluster.T.Fatalf("create a token on %s: %v", i.Name, err)
	}
	return t.Token
}

// WaitReady waits until the node is in the plan and knows a leader.
func (i *Instance) WaitReady() {
	i.cluster.T.Helper()
	i.cluster.Wait(i.Name+" is ready", time.Minute, func() bool { return i.Status().Ready })
}

// Wait polls until the condition holds. In virtual time polling costs nothing;
// over loopback it is a tick, not a guess at how long something takes.
func (c *Cluster) Wait(what string, within time.Duration, holds func() bool) time.Duration {
	c.T.Helper()
	begin := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		for _, i := range c.Nodes {
			if i.done == nil {
				continue
			}
			select {
			case <-i.done:
				c.T.Fatalf("waiting until %s: %s ended: %v", what, i.Name, i.err)
			default:
			}
		}
		if time.Since(begin) > within {
			c.T.Fatalf("not within %s: %s\n%s", within, what, c.describe())
		}
		<-tick.C
	}
	return time.Since(begin)
}

func (c *Cluster) describe() string {
	var s strings.Builder
	for _, i := range c.Nodes {
		if i.node == nil {
			fmt.Fprintf(&s, "%s: not running\n", i.Name)
			continue
		}
		st := i.Status()
		fmt.Fprintf(&s, "%s: leader %s, generation %d, ready %v, members %v, problems %q\n",
			i.Name, cmp.Or(st.Leader, "none"), st.Generation, st.Ready, i.Members(), st.Problems)
	}
	return s.String()
}

// AnyReady returns a node that is ready.
func (c *Cluster) AnyReady() *Instance {
	c.T.Helper()
	var found *Instance
	c.Wait("a node is ready", time.Minute, func() bool {
		for _, i := range c.Nodes {
			if i.Status().Ready {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

// Leader waits until all running nodes agree on a leader among them.
func (c *Cluster) Leader() *Instance {
	c.T.Helper()
	var found *Instance
	c.Wait("one leader", time.Minute, func() bool {
		found = nil
		names := map[string]bool{}
		for _, i := range c.Nodes {
			if i.Running() {
				names[i.Status().Leader] = true
			}
		}
		for _, i := range c.Nodes {
			if i.Running() && len(names) == 1 && names[i.Name] {
				found = i
			}
		}
		return found != nil
	})
	return found
}

// Voters counts the voters of the plan as one node sees it, the leader included.
func (i *Instance) Voters() int {
	n := 0
	for _, m := range i.Plan().Members {
		if m.Role != "nonvoter" {
			n++
		}
	}
	return n
}

// WaitEqual waits until all running nodes hold the same plan.
func (c *Cluster) WaitEqual(within time.Duration) time.Duration {
	c.T.Helper()
	return c.Wait("all plans are equal", within, func() bool {
		digests := map[string]bool{}
		for _, i := range c.Nodes {
			if i.Running() {
				digests[i.Plan().Digest] = true
			}
		}
		return len(digests) == 1 && !digests[""]
	})
}

// Others lists the running nodes but one.
func (c *Cluster) Others(not *Instance) []*Instance {
	var list []*Instance
	for _, i := range c.Nodes {
		if i != not && i.Running() {
			list = append(list, i)
		}
	}
	return list
}

// Isolate cuts a node off from all others.
func (c *Cluster) Isolate(i *Instance) {
	for _, o := range c.Nodes {
		if o != i {
			c.Network.Partition([]string{i.ip}, []string{o.ip})
		}
	}
}

func (c *Cluster) stopAll() {
	for _, i := range c.Nodes {
		_ = i.Stop()
	}
}
