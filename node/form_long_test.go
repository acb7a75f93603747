//go:build long

package node_test

import "testing"

func TestFiftyNodes(t *testing.T) {
	grown(t, 50, 10)
}
