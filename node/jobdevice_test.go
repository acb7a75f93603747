package node_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// While a job goes on without the device of its node, the node's status says so and why.
func TestAStatusSaysWhatAJobIsComputedOn(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		var broken atomic.Bool
		s.Fault = func(_ string, epoch int) error {
			if epoch == 3 && broken.CompareAndSwap(false, true) {
				return &slot.Broken{Device: "cuda:0", Epoch: 3, Step: 1}
			}
			return nil
		}
		n := c.Nodes[0]
		id := startedAs(t, n, "single", 20)
		said := "job " + id + " is computed on this node's processor: the device cuda:0 failed in epoch 3, step 1: "
		says := func() bool {
			return strings.HasPrefix(strings.Join(n.Status().Problems, "\n"), said)
		}
		c.Wait("the node says that its device failed", time.Minute, says)
		under(c, n, id, 20)
		c.Wait("nothing is wrong with the node when the job is done", time.Minute, func() bool { return !says() })
		if s := n.Status(); s.Device != "cpu" || s.DeviceReason == "" || !broken.Load() {
			t.Errorf("%+v", s)
		}
	})
}
