//go:build long

package node_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// What epochs leave for each other is in no checkpoint: such a job begins anew.
func TestPipedJobWithLeftoversOutlivesANode(t *testing.T) {
	pipedOutlivesANode(t, map[api.Setting]string{
		{Key: "pipe.histories", Value: "left"}: "pipe", {Key: "pipe.gradients", Value: "kept"}: "pipe",
	})
}

// A node that dies in the middle of an epoch takes nothing with it: the others, with fewer
// stages or several ways each, come to the weights of a job that nothing happened to.
func TestPipedJobOutlivesANode(t *testing.T) {
	pipedOutlivesANode(t, map[api.Setting]string{
		{Key: "pipe.period", Value: "7"}: "pipe", {Key: "pipe.ways", Value: "3"}: "graph",
	})
}
