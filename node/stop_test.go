package node_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// The same mesh over real sockets, with disks, real clocks and the HTTP API.
func TestOverLoopback(t *testing.T) {
	before := runtime.NumGoroutine()
	nodetest.Loopback(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		leader := c.Leader()
		leader.Kill()
		c.Wait("another leader", time.Minute, func() bool {
			l := c.Others(leader)[0].Status().Leader
			return l != "" && l != leader.Name
		})
		leader.Move()
		leader.Restart()
		leader.WaitReady()
		c.WaitEqual(time.Minute)

		client, err := api.NewClient("unix:" + filepath.Join(leader.Options.DataDir, "hopmesh.sock"))
		if err != nil {
			t.Fatal(err)
		}
		status, err := client.Status(t.Context())
		if err != nil || !status.Ready || status.Node != leader.Name {
			t.Errorf("over HTTP: %+v, %v", status, err)
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-tick.C
	}
	b := make([]byte, 1<<18)
	t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), b[:runtime.Stack(b, true)])
}

// A stop must not wait for those who are gone.
func TestStopWithoutAQuorum(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		last := c.Leader()
		for _, o := range c.Others(last) {
			o.Kill()
		}
		begin := time.Now()
		if err := last.Stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A node that is in no mesh says so, is told to join through its API, and joins.
func TestJoinThroughTheAPI(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		i := c.Add()
		i.Start()
		c.Wait("it says what it waits for", time.Minute, func() bool {
			return strings.Contains(strings.Join(i.Status().Problems, ""), "hopmesh join")
		})
		bad := api.JoinRequest{Peers: []string{c.Nodes[0].Addr()}, Token: "hm1-nonsense"}
		if err := i.API().Join(t.Context(), bad); err == nil {
			t.Error("joined with a token that is none")
		}
		token := c.Nodes[0].Token()
		nobody := api.JoinRequest{Peers: []string{"10.7.7.7:1"}, Token: token}
		if err := i.API().Join(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "10.7.7.7:1") {
			t.Errorf("joined through nobody: %v", err)
		}
		good := api.JoinRequest{Peers: []string{c.Nodes[0].Addr()}, Token: token}
		if err := i.API().Join(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		i.WaitReady()
		if err := i.API().Join(t.Context(), good); err == nil {
			t.Error("joined twice")
		}
	})
}

// After it left, a node's directory is as new: it may join again, as another.
func TestLeaveAndJoinAnew(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Others(c.Leader())[0]
		old := n.Plan()
		if err := n.API().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = n.Exited(time.Minute)
		if _, err := os.Stat(filepath.Join(n.Options.DataDir, "identity")); !os.IsNotExist(err) {
			t.Errorf("the identity is still there: %v", err)
		}
		n.Forget()
		n.Options.Join, n.Options.Token = []string{c.Leader().Addr()}, c.Leader().Token()
		n.Start()
		n.WaitReady()
		for _, m := range n.Plan().Members {
			for _, was := range old.Members {
				if m.Name == n.Name && m.ID == was.ID {
					t.Error("it came back under the id that left")
				}
			}
		}
		if got := len(n.Plan().Members); got != 3 {
			t.Errorf("%d members", got)
		}
	})
}
