package grappa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Name is what users call the strategy.
const Name = "grappa"

// Settings are those of grappa.
type Settings struct {
	Loader string // Halo, Strict or HaloSampled
	Depth  int    // hops of halo
	Cap    int    // halo rows that HaloSampled keeps, about; 0: as many as a group has other rows

	Groups int    // virtual workers; 0: usualGroups, where nobody wrote down how many
	Swept  int    // shards that a group has beside its own; 0: as many as its own
	Sweep  string // SweepKeyed, SweepPublished or strategy.Off
	Switch string // afterPeriod or onPlateau
	Period int    // epochs of a super-epoch, or without an improvement

	Correction string  // CorrectNone or another
	Shrink     float64 // λ: how far weights are drawn to 1
	Pseudo     float64 // κ: pseudo-count of seen edges of each vertex
	Hops       string  // firstHop or allHops: those whose coverage counts
	Loss       string  // exactLoss, or groupLoss: all groups have equal weight

	Running
	Average int // local updates between averages; 1: gradients are added up
}

// Running is how a node goes about it, which changes nothing of what is learned.
type Running struct {
	Prefetch bool // the next shards are fetched before they are due
	Phases   int  // runs in which a node computes its groups; 0: as many as memory asks for
	Cache    int  // rows of other nodes to keep; strategy.Asked: as memory has room
}

// usualGroups is how many groups there are where the settings don't say: in programs, and
// in jobs of earlier versions. Others have what complete writes down.
const usualGroups = 4

// The values of settings.
const (
	Halo        = "halo"
	Strict      = "strict"
	HaloSampled = "halo-sampled"

	SweepKeyed     = "keyed"
	SweepPublished = "published"

	CorrectNone     = "none"
	CorrectBatch    = "batch"
	CorrectNode     = "node"
	CorrectSelf     = "self-normalised"
	CorrectMessage  = "message"
	CorrectReleased = "released"

	afterPeriod = "period"
	onPlateau   = "plateau"
	firstHop    = "first"
	allHops     = "all"
	exactLoss   = "exact"
	groupLoss   = "groups"
)

// prefix begins the keys of all settings.
const prefix = Name + "."

func (s *Settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Word(&s.Loader, "grappa.loader",
			"what a group sees: all in-edges of its vertices, with the features of those beyond (halo), only edges among its vertices (strict), or some of those beyond, each counting for more (halo-sampled)",
			Halo, Strict, HaloSampled),
		strategy.Number(&s.Depth, "grappa.depth",
			"how many hops beyond its vertices a group sees, with a halo; as many as the model has layers: all that one machine sees",
			strategy.Whole{Unit: "HOPS", Default: 1}),
		strategy.Number(&s.Cap, "grappa.cap",
			"about how many rows of halo a group keeps, with halo-sampled; auto: as many as it has beside them",
			strategy.Whole{Unit: "ROWS", Most: strategy.MostRows, Words: []string{strategy.Auto}}),
		strategy.Number(&s.Groups, "grappa.groups",
			"how many virtual workers there are, each with a run of shards; nodes run whole ones, and what is learnt does not depend on how many nodes there are; auto: as many as nodes when the job is created, or a multiple where a group would take too much of their memory",
			strategy.Whole{Unit: "GROUPS", Words: []string{strategy.Auto}}),
		strategy.Number(&s.Swept, "grappa.swept",
			"how many shards of others a group has at a time beside its own; auto: as many as its own",
			strategy.Whole{Unit: "SHARDS", Words: []string{strategy.Auto}}),
		strategy.Word(&s.Sweep, "grappa.sweep",
			"in which order shards of others pass through the groups: drawn from the seed, in turn as published, or none do",
			SweepKeyed, SweepPublished, strategy.Off),
		strategy.Word(&s.Switch, "grappa.switch",
			"when groups turn to the next shards: after grappa.period epochs, or after so many that have brought validation nothing better",
			afterPeriod, onPlateau),
		strategy.Number(&s.Period, "grappa.period",
			"how many epochs that are",
			strategy.Whole{Unit: "EPOCHS", Default: 50, Of: "of epochs"}),
		strategy.Word(&s.Correction, "grappa.correction",
			"what makes up for neighbours that a group does not see: nothing (none); losses weighted by the share that it sees, on average over its roots (batch), each (node), or each and all scaled up (self-normalised); messages weighted by how rarely they are seen (message); or what was released with the paper",
			CorrectNone, CorrectBatch, CorrectNode, CorrectSelf, CorrectMessage, CorrectReleased),
		strategy.Fraction(&s.Shrink, "grappa.shrink", "SHARE", 1,
			"how far the weights of losses are drawn to 1, from 0, not at all, to 1, which is no correction"),
		strategy.Fraction(&s.Pseudo, "grappa.pseudo", "EDGES", strategy.MostCount,
			"how many edges are counted as seen beside those that there are, as another way to draw weights to 1"),
		strategy.Word(&s.Hops, "grappa.hops",
			"whose neighbours count in the weight of a loss: its root's, or those of all that it reads",
			firstHop, allHops),
		strategy.Word(&s.Loss, "grappa.loss",
			"whether all roots of a step count as much, or all groups, as published",
			exactLoss, groupLoss),
		strategy.Number(&s.Phases, "grappa.phases",
			"in how many phases, one after another, a node computes its groups in each step; auto: one, or more where a step takes too much memory",
			strategy.Whole{Unit: "PHASES", Words: []string{strategy.Auto}}),
		strategy.Switch(&s.Prefetch, "grappa.prefetch",
			"bring the next shards while training goes on with these"),
		strategy.Cache(&s.Cache, "grappa.cache"),
		strategy.Number(&s.Average, "grappa.average_every",
			"how many steps each node updates a model of its own before all are averaged, for comparison; 1: gradients are added up in each step",
			strategy.Whole{Unit: "STEPS", Default: 1}),
	}
}

// Of returns grappa's settings of a job, which have been checked.
func Of(job *strategy.Settings) (s Settings) {
	_ = s.keys().Parse(job.Values)
	return s
}

// hop returns the hops of halo: none where the loader is strict.
func (s *Settings) hop() int {
	if s.Loader == Strict {
		return 0
	}
	return s.Depth
}

// sweeps reports whether shards of others pass through the groups.
func (s *Settings) sweeps() bool { return s.Sweep != strategy.Off }

// weighs reports whether losses have weights.
func (s *Settings) weighs() bool {
	return s.Correction != CorrectNone && s.Correction != CorrectMessage
}

// groupsOf returns how many groups a dataset of so many shards has.
func (s *Settings) groupsOf(shards int) int {
	if s.Groups > 0 {
		return s.Groups
	}
	return max(1, min(usualGroups, shards))
}

// memoryShare is the part of a node's memory that the shards which a group sees may have
// where the number of groups is chosen by it.
const memoryShare = 4

// complete writes down how many groups there are: as many as nodes, or as many times more
// that the shards of a group, and as many of others, take a part of a node's memory only.
func complete(job *strategy.Settings, at strategy.Place) {
	if job.Strategy != Name || Of(job).Groups > 0 || at.Nodes < 1 || at.Shards < 1 {
		return
	}
	groups := uint64(at.Nodes)
	if at.Memory > 0 && at.Bytes > 0 {
		room := max(1, at.Memory/memoryShare)
		least := min((2*at.Bytes+room-1)/room, uint64(at.Shards))
		groups *= max(1, (least+groups-1)/groups)
	}
	*job = job.With(fmt.Sprintf("grappa.groups=%d", min(groups, uint64(at.Shards))))
}

// declaration is what grappa declares of its settings.
var declaration = strategy.Declaration{
	Name:          Name,
	Learns:        strategy.Learns{Links: true, Embeddings: true},
	Keys:          func() strategy.Keys { return new(Settings).keys() },
	CheckSettings: checkSettings,
	Complete:      complete,
	CheckNodes:    checkNodes,
	Begins:        begins,
	Describe:      describe,
	CheckShards: func(job *strategy.Settings, shards int) error {
		if job.Strategy != Name {
			return nil
		}
		s := Of(job)
		return s.checkShards(shards)
	},
	Same: same,
}

func checkSettings(job *strategy.Settings) error {
	if job.Strategy == Name && job.Topology() == strategy.Replicated {
		return fmt.Errorf("topology=%s: with {strategy} %s nodes bring the edges that their groups see, and no others: leave it out, or take another {strategy}", strategy.Replicated, Name)
	}
	s := Of(job)
	if err := s.checkTogether(); err != nil {
		return err
	}
	if job.Strategy != Name {
		for key := range job.Values {
			if strings.HasPrefix(key, prefix) {
				return fmt.Errorf("settings of grappa are for {strategy} %s, which is not exact, so that nothing else comes to it: choose that one, or leave them out", Name)
			}
		}
	}
	if s.Average > 1 && job.Deterministic {
		return fmt.Errorf("grappa.average_every=%d: models that update themselves are as many as nodes, so their weights depend on how many there are, and {deterministic} promises that they don't: leave one of the two out", s.Average)
	}
	return nil
}

// checkTogether returns an error if settings of grappa contradict each other.
func (s *Settings) checkTogether() error {
	const off = strategy.Off
	drawn := s.Shrink > 0 || s.Pseudo > 0
	switch {
	case s.Depth > 1 && s.Loader == Strict:
		return fmt.Errorf("grappa.depth=%d: a group that is %s sees nothing beyond its vertices: choose grappa.loader=%s, or leave one of the two out", s.Depth, Strict, Halo)
	case s.Depth > 1 && s.Loader == HaloSampled:
		return fmt.Errorf("grappa.depth=%d: grappa.loader=%s keeps some of the vertices one hop away, and none beyond: choose grappa.loader=%s, or leave one of the two out", s.Depth, HaloSampled, Halo)
	case s.Cap > 0 && s.Loader != HaloSampled:
		return fmt.Errorf("grappa.cap=%d: only grappa.loader=%s leaves rows of the halo out: choose that, or leave it out", s.Cap, HaloSampled)
	case s.Swept > 0 && s.Sweep == off:
		return fmt.Errorf("grappa.swept=%d: with grappa.sweep=%s a group has its own shards only: leave one of the two out", s.Swept, off)
	case s.Switch == onPlateau && s.Sweep == off:
		return fmt.Errorf("grappa.switch=%s: with grappa.sweep=%s there is nothing to turn to: leave one of the two out", onPlateau, off)
	case drawn && !slices.Contains([]string{CorrectBatch, CorrectNode, CorrectSelf}, s.Correction):
		return fmt.Errorf("grappa.correction=%s has no weights that grappa.shrink and grappa.pseudo could draw to 1: choose %s, %s or %s, or leave them out", s.Correction, CorrectBatch, CorrectNode, CorrectSelf)
	case s.Correction == CorrectMessage && s.Loader == Strict && s.Sweep == off:
		return fmt.Errorf("grappa.correction=%s: with grappa.sweep=%s a group that is %s never sees the edges from others' shards, so that no message can count for theirs: choose another, or leave one of the three out", CorrectMessage, off, Strict)
	case s.Hops == allHops && !s.weighs():
		return fmt.Errorf("grappa.hops=%s: grappa.correction=%s weighs no losses: choose another, or leave it out", allHops, s.Correction)
	case s.Average > 1 && s.Phases > 1:
		return fmt.Errorf("grappa.phases=%d: with grappa.average_every=%d a node updates its model once for all of its groups: leave one of the two out", s.Phases, s.Average)
	case s.Average > 1 && s.Correction == CorrectSelf:
		return fmt.Errorf("grappa.average_every=%d: grappa.correction=%s makes one mean of the roots of all nodes in each step, and models that update themselves don't wait for it: leave one of the two out", s.Average, CorrectSelf)
	case s.Loss == groupLoss && s.Correction == CorrectSelf:
		return fmt.Errorf("grappa.loss=%s: grappa.correction=%s makes one mean of all roots: leave one of the two out", groupLoss, CorrectSelf)
	}
	return nil
}

func checkNodes(job *strategy.Settings, nodes int) error {
	s := Of(job)
	if job.Strategy == Name && s.Average > 1 && s.groupsOf(nodes) < nodes {
		return fmt.Errorf("grappa.average_every=%d: each node has a model, and there are groups for %d of %d nodes only: choose {grappa.groups}=%d or more, or leave it out", s.Average, s.groupsOf(nodes), nodes, nodes)
	}
	return nil
}

// checkShards returns an error if a dataset of so many shards can't have these
// settings.
func (s *Settings) checkShards(shards int) error {
	n := s.groupsOf(shards)
	own := shards / n // of the smallest groups
	switch {
	case s.Groups > shards:
		return fmt.Errorf("grappa.groups=%d: each needs a shard of its own, and the dataset has %d: choose fewer, or import it with more {dataset.shards}", s.Groups, shards)
	case n > 1 && s.Swept > shards-own:
		return fmt.Errorf("grappa.swept=%d: a group has at least %d of the dataset's %d shards by itself, and at most %d are others': choose fewer", s.Swept, own, shards, shards-own)
	}
	return nil
}

// same reports whether two jobs train the same in isolation. How views are fetched, and in
// how many phases groups are computed, makes no difference.
func same(a, b *strategy.Settings) bool {
	x, y := Of(a), Of(b)
	x.Running, y.Running = Running{}, Running{}
	return x == y && (a.Strategy == Name) == (b.Strategy == Name)
}
