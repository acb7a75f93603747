package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// keepRows has rows of other nodes kept that steps and evaluations bring, where the strategy
// allows it. They get half of the memory that nothing else has asked for: what comes after the
// forecast needs some, too. Nodes may keep different rows, since none of it changes what is
// learned.
func (t *Trainer) keepRows(ctx context.Context, need *Needs) error {
	d := t.described()
	if t.Session.Alone() || t.Foreign != nil || d.Cache == nil || d.Cache(&t.Recipe.Sharing) != strategy.Asked {
		return nil
	}
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	left := has - min(has, need.OnHost())
	rows, of, bytes, err := t.Session.Source.Keep(ctx, left/2, t.Session.Replica.Shards, &t.Session.Start)
	if err != nil {
		return err
	}
	t.Sharing.Cached = bytes
	t.Log.Info("rows of other nodes are kept as they come", "rows", rows, "of", of, "bytes", bytes)
	if rows < of {
		t.Notes = append(t.Notes, fmt.Sprintf("a node has memory to keep %d of %d rows of other nodes: the others are brought in each epoch", rows, of))
	}
	need.Add(budget.Graph, bytes)
	t.bound(need)
	return nil
}
