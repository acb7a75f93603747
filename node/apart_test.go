package node_test

import (
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

// sayingAll finds a sentence that says all of it.
func sayingAll(list []string, says ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return !slices.ContainsFunc(says, func(part string) bool { return !strings.Contains(s, part) })
	})
}

// cutPair cuts two nodes of a job from each other, neither of which leads: gossip goes on
// to see both.
func cutPair(c *nodetest.Cluster) (a, b *nodetest.Instance) {
	rest := c.Others(c.Leader())
	a, b = rest[0], rest[1]
	c.Network.Partition([]string{a.IP()}, []string{b.IP()})
	return a, b
}
