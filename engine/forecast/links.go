package forecast

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// Link has pairs learnt of a graph that is here, as a recipe says. It returns an error if there is no
// room for that, or if no job could train so.
func Link(ctx context.Context, d *dataset.Graph, r *recipe.Recipe) error {
	if needs, has := d.About.LinkBytes(r.Links), left(); needs > has {
		return short(needs, has, "finds the pairs that are learnt")
	}
	if err := d.Link(ctx, r.Links, r.Seed); err != nil {
		return err
	}
	split := d.About.Splits[0]
	return r.CheckPairs(int(split.Train), int(split.Val))
}

// pairing is the pairs of the step that is counted. Its seed vertices are places of pairs.
type pairing struct {
	of     *link.Pairs
	within *link.Regions // of the strategy that is counted; nil: it learns all pairs
	batch  link.Batch
}

// Pairs returns the pairs that are learnt; nil: vertices are.
func (g *Graph) Pairs() *link.Pairs { return g.pairs }

// confined has the pairs counted that a strategy learns, by what its groups see; nil: all.
func (c *counter) confined(s Sight) {
	switch {
	case c.pairs == nil:
	case s == nil:
		c.pairs.within = nil
	default:
		c.pairs.within = s.Regions()
	}
}

// dealt returns what is dealt of a step: the sources of pairs where these are learnt.
func (c *counter) dealt(batch []uint32) []uint32 {
	if c.pairs == nil {
		return batch
	}
	c.pairs.batch.Begin(c.pairs.of, batch, looked, c.pairs.within)
	return c.pairs.batch.Sources()
}

// roots returns the vertices whose blocks are drawn for what was dealt, and the words of their pairs.
func (c *counter) roots(dealt []uint32) (vertices []uint32, words []int32) {
	if c.pairs == nil || len(dealt) == 0 {
		return dealt, nil
	}
	return c.pairs.batch.Ends(nil, nil, dealt)
}
