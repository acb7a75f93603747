// Package nodetest runs whole meshes inside one test, in virtual time or over loopback.
// It provokes kills, restarts, partitions, and slow and lossy links. It is for tests
// only.
package nodetest

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh/meshtest"
)

// Cluster is the nodes of one test.
type Cluster struct {
	T       testing.TB
	Network *meshtest.Network // nil over loopback
	Nodes   []*Instance

	dir string
	log slog.Handler
}

// Virtual runs f with a mesh of n nodes in virtual time. Everything it starts is
// stopped before it returns.
func Virtual(t *testing.T, n int, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{T: t, Network: meshtest.NewNetwork(uint64(n)), dir: dir, log: handler(t)}
		// memberlist's probes outlive its shutdown by their timeout, and the bubble must
		// not end before them.
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

// handler shows the nodes' logs when HOPMESH_TEST_LOG is set, since they are long.
func handler(t testing.TB) slog.Handler {
	if os.Getenv("HOPMESH_TEST_LOG") == "" {
		return slog.DiscardHandler
	}
	return slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})
}

// Grow adds nodes. The first node of a cluster founds the mesh, and the others join it
// concurrently. Grow returns when all are ready.
func (c *Cluster) Grow(n int) []*Instance {
	c.T.Helper()
	var fresh []*Instance
	for range n {
		fresh = append(fresh, c.Add())
	}
	return c.Enter(fresh)
}

// Enter starts nodes that were added and brings them into the mesh, as Grow does.
func (c *Cluster) Enter(fresh []*Instance) []*Instance {
	c.T.Helper()
	if len(fresh) > 0 && fresh[0] == c.Nodes[0] {
		fresh[0].Options.Bootstrap = true
		fresh[0].Start()
		fresh[0].WaitReady()
	}
	if len(fresh) > 0 && len(c.Nodes) > 1 {
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

// Wait polls until the condition holds. In virtual time polling costs nothing; over
// loopback it polls at a fixed interval. A node that ended meanwhile fails the test,
// unless it left or may end.
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
				if i.mayEnd(i.err) {
					continue
				}
				c.T.Fatalf("waiting until %s: %s ended: %v", what, i.Name, i.err)
			default:
			}
		}
		if time.Since(begin) > within {
			c.T.Fatalf("not within %s: %s\n%s", within, what, c.Describe())
		}
		<-tick.C
	}
	return time.Since(begin)
}

// Describe says how each node sees the mesh.
func (c *Cluster) Describe() string {
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

// WaitVoters waits until every running node knows of at least that many voters. It would
// not be enough if one node knew, as the test may kill that node and leave the others
// with fewer voters.
func (c *Cluster) WaitVoters(least int) {
	c.T.Helper()
	c.Wait(fmt.Sprintf("all know of %d voters", least), time.Minute, func() bool {
		for _, i := range c.Nodes {
			if i.Running() && i.Voters() < least {
				return false
			}
		}
		return true
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
