//go:build !later

package node

import (
	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/node/lead"
)

// trials returns the steps of the leader's rounds that only builds with tag later have.
func trials(*consensus.Consensus) []lead.Step { return nil }
