//go:build long

package node_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

func TestSharedJobOutlivesANode(t *testing.T) {
	for who, at := range map[string]int{"the first": 0, "the last": 2} {
		t.Run(who, func(t *testing.T) {
			jobOutlives(t, func(c *nodetest.Cluster, j api.Job) *nodetest.Instance { return named(c, j.Nodes[at]) })
		})
	}
}

func TestSharedJobOutlivesAnyPartition(t *testing.T) {
	cutOff(t, 0, 1)
}

func TestSharedJobResumesSoonWithoutAnyNode(t *testing.T) {
	resumesSoon(t, "the first", "the last")
}

func TestSharedJobOutlivesOtherTroubles(t *testing.T) {
	troubled(t, 2, 3)
}

// One trouble after the other, at any moment, the first one before the last is over:
// in the end each epoch is there once, with the weights that it has on one node.
func TestSharedJobOutlivesTroubles(t *testing.T) {
	troubled(t, 1)
}
