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
