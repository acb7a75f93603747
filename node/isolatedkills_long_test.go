//go:build long

package node_test

import "testing"

// The groups turn to other shards after epochs 4, 8, 12 and 16.
func TestIsolatedJobOutlivesAnyNodeAtAnyEpoch(t *testing.T) {
	isolatedKills(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
}
