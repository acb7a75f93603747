package strategy

import (
	"fmt"
	"slices"
	"strconv"
)

// GrappaSettings are those of grappa.
type GrappaSettings struct {
	Loader string `json:"loader,omitempty"` // halo (which is ""), strict or halo-sampled
	Depth  int    `json:"depth,omitempty"`  // hops of halo; 0 and 1: one
	Cap    int    `json:"cap,omitempty"`    // halo rows that halo-sampled keeps, about; 0: as many as a group has other rows

	Groups int    `json:"groups,omitempty"` // virtual workers; 0: UsualGroups
	Swept  int    `json:"swept,omitempty"`  // shards that a group has beside its own; 0: as many as its own
	Sweep  string `json:"sweep,omitempty"`  // keyed (which is ""), published or off
	Switch string `json:"switch,omitempty"` // period (which is ""), or plateau
	Period int    `json:"period,omitempty"` // epochs of a super-epoch, or without an improvement; 0: UsualPeriod

	Correction string  `json:"correction,omitempty"` // none (which is ""), batch, node, self-normalised, message or released
	Shrink     float64 `json:"shrink,omitempty"`     // λ: how far weights are drawn to 1
	Pseudo     float64 `json:"pseudo,omitempty"`     // κ: pseudo-count of seen edges of each vertex
	Hops       string  `json:"hops,omitempty"`       // first (which is ""), or all: hops whose coverage counts
	Loss       string  `json:"loss,omitempty"`       // exact (which is ""), or groups: all have equal weight

	Serial  bool `json:"serial,omitempty"`        // grappa.prefetch=off: the next shards are fetched when they are due
	Average int  `json:"average_every,omitempty"` // local updates between averages; 0 and 1: gradients are added up
}

// The defaults of grappa.
const (
	UsualGroups = 4
	UsualPeriod = 50
)

// The names of setting values.
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

	period  = "period"
	plateau = "plateau"
	first   = "first"
	all     = "all"
	exact   = "exact"
	groups  = "groups"
)

var grappaKeys = []key{
	{Key{"grappa.loader", Grappa, "halo|strict|halo-sampled", Halo,
		"what a group sees: all in-edges of its vertices, with the features of those beyond (halo), only edges among its vertices (strict), or some of those beyond, each counting for more (halo-sampled)"},
		func(s *Settings, v string) error {
			return choose(v, &s.Grappa.Loader, Halo, Strict, HaloSampled)
		},
		func(s *Settings) string { return orElse(s.Grappa.Loader, Halo) }},
	{Key{"grappa.depth", Grappa, "HOPS", "1",
		"how many hops beyond its vertices a group sees, with a halo; as many as the model has layers: all that one machine sees"},
		func(s *Settings, v string) error { return count(v, &s.Grappa.Depth) },
		func(s *Settings) string { return strconv.Itoa(max(1, s.Grappa.Depth)) }},
	{Key{"grappa.cap", Grappa, "auto|ROWS", Auto,
		"about how many rows of halo a group keeps, with halo-sampled; auto: as many as it has beside them"},
		func(s *Settings, v string) error { return some(v, Auto, &s.Grappa.Cap, mostCached) },
		func(s *Settings) string { return someOr(s.Grappa.Cap, Auto) }},
	{Key{"grappa.groups", Grappa, "auto|GROUPS", Auto,
		fmt.Sprintf("how many virtual workers there are, each with a run of shards; nodes run whole ones, and what is learnt does not depend on how many nodes there are; auto: %d, or as many as shards", UsualGroups)},
		func(s *Settings, v string) error { return some(v, Auto, &s.Grappa.Groups, mostCount) },
		func(s *Settings) string { return someOr(s.Grappa.Groups, Auto) }},
	{Key{"grappa.swept", Grappa, "auto|SHARDS", Auto,
		"how many shards of others a group has at a time beside its own; auto: as many as its own"},
		func(s *Settings, v string) error { return some(v, Auto, &s.Grappa.Swept, mostCount) },
		func(s *Settings) string { return someOr(s.Grappa.Swept, Auto) }},
	{Key{"grappa.sweep", Grappa, "keyed|published|off", SweepKeyed,
		"in which order shards of others pass through the groups: drawn from the seed, in turn as published, or none do"},
		func(s *Settings, v string) error {
			return choose(v, &s.Grappa.Sweep, SweepKeyed, SweepPublished, off)
		},
		func(s *Settings) string { return orElse(s.Grappa.Sweep, SweepKeyed) }},
	{Key{"grappa.switch", Grappa, "period|plateau", period,
		"when groups turn to the next shards: after grappa.period epochs, or after so many that have brought validation nothing better"},
		func(s *Settings, v string) error { return choose(v, &s.Grappa.Switch, period, plateau) },
		func(s *Settings) string { return orElse(s.Grappa.Switch, period) }},
	{Key{"grappa.period", Grappa, "EPOCHS", strconv.Itoa(UsualPeriod),
		"how many epochs that are"},
		setPeriod,
		func(s *Settings) string { return strconv.Itoa(s.Grappa.Epochs()) }},
	{Key{"grappa.correction", Grappa, "none|batch|node|self-normalised|message|released", CorrectNone,
		"what makes up for neighbours that a group does not see: nothing (none); losses weighted by the share that it sees, on average over its roots (batch), each (node), or each and all scaled up (self-normalised); messages weighted by how rarely they are seen (message); or what was released with the paper"},
		func(s *Settings, v string) error { return choose(v, &s.Grappa.Correction, corrections...) },
		func(s *Settings) string { return s.Grappa.Corrects() }},
	{Key{"grappa.shrink", Grappa, "SHARE", "0",
		"how far the weights of losses are drawn to 1, from 0, not at all, to 1, which is no correction"},
		setShrink,
		func(s *Settings) string { return number(s.Grappa.Shrink) }},
	{Key{"grappa.pseudo", Grappa, "EDGES", "0",
		"how many edges are counted as seen beside those that there are, as another way to draw weights to 1"},
		setPseudo,
		func(s *Settings) string { return number(s.Grappa.Pseudo) }},
	{Key{"grappa.hops", Grappa, "first|all", first,
		"whose neighbours count in the weight of a loss: its root's, or those of all that it reads"},
		func(s *Settings, v string) error { return choose(v, &s.Grappa.Hops, first, all) },
		func(s *Settings) string { return orElse(s.Grappa.Hops, first) }},
	{Key{"grappa.loss", Grappa, "exact|groups", exact,
		"whether all roots of a step count as much, or all groups, as published"},
		func(s *Settings, v string) error { return choose(v, &s.Grappa.Loss, exact, groups) },
		func(s *Settings) string { return orElse(s.Grappa.Loss, exact) }},
	{Key{"grappa.prefetch", Grappa, "on|off", on,
		"bring the next shards while training goes on with these"},
		func(s *Settings, v string) error { return toggle(v, &s.Grappa.Serial) },
		func(s *Settings) string { return toggled(s.Grappa.Serial) }},
	{Key{"grappa.average_every", Grappa, "STEPS", "1",
		"how many steps each node updates a model of its own before all are averaged, a yardstick; 1: gradients are added up in each step"},
		func(s *Settings, v string) error { return count(v, &s.Grappa.Average) },
		func(s *Settings) string { return strconv.Itoa(max(1, s.Grappa.Average)) }},
}

var corrections = []string{CorrectNone, CorrectBatch, CorrectNode, CorrectSelf, CorrectMessage, CorrectReleased}

// Epochs returns the length of a super-epoch, or how many epochs it may last without an
// improvement.
func (s *GrappaSettings) Epochs() int {
	if s.Period == 0 {
		return UsualPeriod
	}
	return s.Period
}

// Averages returns how many local updates lie between two averages; 0 and 1: there are
// none.
func (s *Settings) Averages() int {
	if s.Strategy == Grappa {
		return s.Grappa.Average
	}
	return s.Leap.SyncEvery
}

// Hop returns the hops of halo: none where the loader is strict.
func (s *GrappaSettings) Hop() int {
	if s.Loader == Strict {
		return 0
	}
	return max(1, s.Depth)
}

// Sweeps reports whether shards of others pass through the groups.
func (s *GrappaSettings) Sweeps() bool { return s.Sweep != off }

// OnPlateau reports whether a super-epoch ends when validation no longer improves.
func (s *GrappaSettings) OnPlateau() bool { return s.Switch == plateau }

// AllHops reports whether the coverage of all hops counts.
func (s *GrappaSettings) AllHops() bool { return s.Hops == all }

// ByGroups reports whether all groups of a step have equal weight.
func (s *GrappaSettings) ByGroups() bool { return s.Loss == groups }

// Corrects returns the correction for neighbours that are not seen.
func (s *GrappaSettings) Corrects() string { return orElse(s.Correction, CorrectNone) }

// Weighs reports whether losses have weights.
func (s *GrappaSettings) Weighs() bool {
	return s.Corrects() != CorrectNone && s.Correction != CorrectMessage
}

// check returns an error if a setting is invalid.
func (s *GrappaSettings) check() error {
	for _, c := range []struct {
		name, value string
		words       []string
	}{
		{"loader", s.Loader, []string{Halo, Strict, HaloSampled}},
		{"sweep", s.Sweep, []string{SweepKeyed, SweepPublished, off}},
		{"switch", s.Switch, []string{period, plateau}},
		{"correction", s.Correction, corrections},
		{"hops", s.Hops, []string{first, all}},
		{"loss", s.Loss, []string{exact, groups}},
	} {
		var to string
		if c.value == "" {
			continue
		}
		if err := choose(c.value, &to, c.words...); err != nil {
			return fmt.Errorf("grappa.%s=%s: %w", c.name, c.value, err)
		}
	}
	for _, c := range []struct {
		name string
		n    int
		most int
	}{
		{"depth", s.Depth, mostCount},
		{"cap", s.Cap, mostCached},
		{"groups", s.Groups, mostCount},
		{"swept", s.Swept, mostCount},
		{"period", s.Period, mostCount},
		{"average_every", s.Average, mostCount},
	} {
		if c.n < 0 || c.n > c.most {
			return fmt.Errorf("grappa.%s=%d: it is a whole number from 1 to %d", c.name, c.n, c.most)
		}
	}
	switch {
	case !(s.Shrink >= 0 && s.Shrink <= 1):
		return fmt.Errorf("grappa.shrink=%s: %w", number(s.Shrink), errShare)
	case !(s.Pseudo >= 0 && s.Pseudo <= mostCount):
		return fmt.Errorf("grappa.pseudo=%s: %w", number(s.Pseudo), errPseudo)
	}
	return s.checkTogether()
}

// checkTogether returns an error if settings contradict each other.
func (s *GrappaSettings) checkTogether() error {
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
	case s.Switch == plateau && s.Sweep == off:
		return fmt.Errorf("grappa.switch=%s: with grappa.sweep=%s there is nothing to turn to: leave one of the two out", plateau, off)
	case drawn && !slices.Contains([]string{CorrectBatch, CorrectNode, CorrectSelf}, s.Correction):
		return fmt.Errorf("grappa.correction=%s has no weights that grappa.shrink and grappa.pseudo could draw to 1: choose %s, %s or %s, or leave them out", s.Corrects(), CorrectBatch, CorrectNode, CorrectSelf)
	case s.Correction == CorrectMessage && s.Loader == Strict && s.Sweep == off:
		return fmt.Errorf("grappa.correction=%s: with grappa.sweep=%s a group that is %s never sees the edges from others' shards, so that no message can count for theirs: choose another, or leave one of the three out", CorrectMessage, off, Strict)
	case s.Hops == all && !s.Weighs():
		return fmt.Errorf("grappa.hops=%s: grappa.correction=%s weighs no losses: choose another, or leave it out", all, s.Corrects())
	case s.Average > 1 && s.Correction == CorrectSelf:
		return fmt.Errorf("grappa.average_every=%d: grappa.correction=%s makes one mean of the roots of all nodes in each step, and models that update themselves don't wait for it: leave one of the two out", s.Average, CorrectSelf)
	case s.Loss == groups && s.Correction == CorrectSelf:
		return fmt.Errorf("grappa.loss=%s: grappa.correction=%s makes one mean of all roots: leave one of the two out", groups, CorrectSelf)
	}
	return nil
}

// CheckShards returns an error if a dataset of so many shards can't have these
// settings.
func (s *GrappaSettings) CheckShards(shards int) error {
	n := s.GroupsOf(shards)
	own := shards / n // of the smallest groups
	switch {
	case s.Groups > shards:
		return fmt.Errorf("grappa.groups=%d: each needs a shard of its own, and the dataset has %d: choose fewer, or import it with more {dataset.shards}", s.Groups, shards)
	case n > 1 && s.Swept > shards-own:
		return fmt.Errorf("grappa.swept=%d: a group has at least %d of the dataset's %d shards by itself, and at most %d are others': choose fewer", s.Swept, own, shards, shards-own)
	}
	return nil
}

// GroupsOf returns how many groups a dataset of so many shards has.
func (s *GrappaSettings) GroupsOf(shards int) int {
	if s.Groups > 0 {
		return s.Groups
	}
	return max(1, min(UsualGroups, shards))
}
