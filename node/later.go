//go:build later

package node

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/lead"
)

// trials returns the steps of the leader's rounds that a later version has: it proposes a command
// that this version does not know, in each round until it may.
func trials(c *consensus.Consensus) []lead.Step {
	return []lead.Step{func(ctx context.Context, s *plan.State) error {
		if s.Needed() >= plan.Newest {
			return nil
		}
		_, err := c.Apply(ctx, plan.Later{})
		if errors.Is(err, plan.ErrNotAllKnow) {
			return nil
		}
		return err
	}}
}
