//go:build long

package node_test

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

func TestPartsAnywhere(t *testing.T) {
	placements := [][]int{{-1, -1, -1}, {0, 1, 2}, {1, 1, 2}, {2, -1, 1}, {2, 1, 0}}
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		for _, weighted := range []bool{false, true} {
			of := fmt.Sprintf("-%t-", weighted)
			sameBits(t, c, "integers"+of, func(v int) string { return fmt.Sprint(v) }, weighted, placements...)
			sameBits(t, c, "sparse"+of, func(v int) string { return fmt.Sprint(v*1_000_003 - 77) }, weighted, placements...)
			sameBits(t, c, "text"+of, func(v int) string { return fmt.Sprint("v", v) }, weighted, placements...)
		}
	})
}
