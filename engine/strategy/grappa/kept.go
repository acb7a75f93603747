package grappa

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Rows of other nodes come back: each sweep has the same shards pass through the groups, and exact
// evaluation reads the halo. The run keeps them as those of other strategies (train.keepRows), in
// memory that nothing else has asked for. Views find them there and copy them, so that a run may give
// them up at any time. What is seen does not depend on it.

// Start implements Method. The first view has come before it was known how much memory is left.
func (n *Method) Start(context.Context) error {
	n.source.Keep(n.Now.rows)
	return nil
}

// brought returns the cost of fetching the current view on its first call, and counts the rows that
// did not come again: both are reported with the first epoch that uses the view.
func (n *Method) brought() peer.Counts {
	n.Run.Lead().At.Under.Rows.Kept += uint64(n.Now.kept)
	n.Now.kept = 0
	return n.Now.Sent.Take()
}
