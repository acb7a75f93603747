package train

import (
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// dealing gives slots their groups. Hands share it.
type dealing struct {
	shared   *shared   // nil where one node does it all
	front    *front    // nil where rows are gathered
	isolated *isolated // nil where groups see all that they read
	shards   int
	nodes    int
	self     int
	grains   bool // gradients are added up by grains

	mu      sync.Mutex // of what follows
	dealer  strategy.Dealer
	others  []strategy.Group // those of other nodes, of which only the grains are looked at
	holders []int            // of the shards' grains
}

func newDealing(t *trainer) *dealing {
	d := &dealing{shared: t.shared, front: t.front, isolated: t.isolated, shards: len(t.data.shards), nodes: 1, grains: t.recipe.Sharing.Deterministic}
	switch {
	case t.shared != nil:
		d.nodes, d.self, d.dealer = len(t.shared.work.Nodes), t.shared.work.Self, t.shared.dealer
	case t.isolated != nil:
		d.dealer = t.isolated.dealer
	default:
		d.dealer = newAlone(t.data, d.grains)
	}
	if t.learners[0].piped != nil {
		d.dealer, d.grains = pipe.Nobody, false
	}
	return d
}

// deal sets the groups of a slot from its roots.
func (d *dealing) deal(s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.dealt = d.dealer.Deal(s.dealt, s.roots, d.self)
	s.groups = slices.Grow(s.groups[:0], len(s.dealt))[:len(s.dealt)]
	for i := range s.groups {
		s.groups[i].Group = s.dealt[i]
	}
	if d.grains {
		d.spans(s)
	}
}

// after is the node that a model is on after the step of a batch. The dealer guides
// models.
func (d *dealing) after(batch []uint32, model int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dealer.(strategy.Guide).After(batch, model)
}

// spans finds out who brings which sums: a grain that nobody has is in none.
func (d *dealing) spans(s *slot) {
	d.holders = slices.Grow(d.holders[:0], d.shards)[:d.shards]
	for i := range d.holders {
		d.holders[i] = -1
	}
	for node := range d.nodes {
		groups := s.dealt
		if node != d.self {
			d.others = d.dealer.Deal(d.others, s.roots, node)
			groups = d.others
		}
		for i := range groups {
			if len(groups[i].Roots) > 0 {
				d.holders[groups[i].Grain] = node
			}
		}
	}
	s.spans = exchange.SpansTo(s.spans, d.holders, d.nodes)
}

// alone deals a batch to the one node that there is: in one group, or by grains.
type alone struct {
	layout strategy.Layout
	grains *strategy.Grains // nil: in one group
}

func newAlone(d *data, grains bool) *alone {
	a := &alone{layout: strategy.Layout{Nodes: 1, Owners: make([]int, len(d.shards)), Firsts: firsts(d.shards)}}
	if grains {
		a.grains = &strategy.Grains{}
	}
	return a
}

// firsts are those of a layout of shards.
func firsts(shards []*graph.Shard) (all []uint32) {
	for _, s := range shards {
		all = append(all, s.First)
	}
	return append(all, shards[0].Total)
}

// Deal implements strategy.Dealer.
func (a *alone) Deal(to []strategy.Group, batch []uint32, _ int) []strategy.Group {
	var g *strategy.Group
	to = to[:0]
	if a.grains == nil {
		to, g = strategy.More(to)
		g.Roots = append(g.Roots, batch...)
		return to
	}
	a.grains.Cut(&a.layout, batch)
	for shard := range a.layout.Owners {
		if roots := a.grains.Of(shard); len(roots) > 0 {
			to, g = strategy.More(to)
			g.Roots, g.Grain = append(g.Roots, roots...), shard
		}
	}
	return to
}

// Note implements strategy.Dealer: there is nothing to choose.
func (*alone) Note(float64) {}

// Tuning implements strategy.Dealer.
func (*alone) Tuning() strategy.Tuning { return strategy.Tuning{} }

// Restore implements strategy.Dealer.
func (*alone) Restore(strategy.Tuning) {}
