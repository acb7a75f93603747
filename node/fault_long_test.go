//go:build long

package node_test

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

// The leader is cut off for ten minutes: the others go on under another, and
// after the heal all hold the same plan.
func TestTenMinutePartition(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		old := c.Leader()
		c.Isolate(old)
		rest := c.Others(old)
		c.Wait("another leader", 10*time.Second, func() bool {
			l := rest[0].Status().Leader
			return l != "" && l != old.Name
		})
		c.Wait("the old leader steps down", 10*time.Second, func() bool { return old.Status().Leader != old.Name })
		if old.Status().Ready {
			t.Error("a node that is cut off calls itself ready")
		}
		<-time.After(10 * time.Minute)
		rest[0].Token() // the plan moves on without it
		c.Network.Heal()
		healed := time.Now()
		c.WaitEqual(time.Minute)
		leader := c.Leader()
		t.Logf("%s leads; plans equal %s after the heal", leader.Name, time.Since(healed))
		c.Wait("all is well", 2*time.Minute, func() bool { return len(leader.Status().Problems) == 0 })
	})
}
