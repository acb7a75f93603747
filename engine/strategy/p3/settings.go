package p3

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Name is what users call the strategy.
const Name = "p3"

// MostInflight is how many steps may be under way at once.
const MostInflight = 4

// Settings are those of p3.
type Settings struct {
	Inflight int    // batches under way; 1: exact
	Roots    string // grain: owners compute them; or slices
	Push     string // resample: each node samples all blocks; or blocks, which are sent
}

const (
	grain    = "grain"
	sliced   = "slices"
	resample = "resample"
	sent     = "blocks"
)

func (s *Settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Number(&s.Inflight, "p3.inflight",
			fmt.Sprintf("how many batches are under way at once, 1 to %d: with K, first layers are computed with weights that are up to K-1 updates old, so only 1 is exact", MostInflight),
			strategy.Whole{Unit: "BATCHES", Default: 1, Most: MostInflight}),
		strategy.Word(&s.Roots, "p3.roots",
			"who computes a root beyond the first layer: the node that owns its shard, or the one whose slice of the batch it falls into, as published",
			grain, sliced),
		strategy.Word(&s.Push, "p3.push",
			"how a node knows what the first layers of others read: it draws their blocks, too, from the seed, or is sent them, as published; where a node lacks edges they are sent",
			resample, sent),
	}
}

// Of returns p3's settings of a job, which have been checked.
func Of(job *strategy.Settings) (s Settings) {
	_ = s.keys().Parse(job.Values)
	return s
}

// Pushed reports whether nodes are sent the blocks of others even where they could
// sample them.
func (s *Settings) Pushed() bool { return s.Push == sent }

// declaration is what p3 declares of its settings.
var declaration = strategy.Declaration{
	Name: Name, Exact: true,
	Sweepless: "adds up the first layer of one model only",
	Keys:      func() strategy.Keys { return new(Settings).keys() },
	CheckSettings: func(job *strategy.Settings) error {
		if s := Of(job); s.Inflight > 1 && job.Strategy != Name {
			return fmt.Errorf("p3.inflight=%d: only %s has several batches under way, on older weights: choose {strategy} %s, or leave it out", s.Inflight, Name, Name)
		}
		return nil
	},
	Same: func(a, b *strategy.Settings) bool { return Of(a).Inflight == Of(b).Inflight },
}
