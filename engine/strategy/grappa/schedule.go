package grappa

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// A Schedule assigns shards to groups, and determines which other shards pass through
// each group when. It depends on the settings and on how many shards there are, not on
// the nodes. It is immutable.
//
// Time is in super-epochs, from 0 on. In a sweep, which has Slots of them, each group
// meets each shard of the others once.
type Schedule struct {
	shards, groups int
	swept          int // shards of others that a group has at a time
	slots          int
	sweep          string
	seed           uint64
}

// NewSchedule returns the schedule of a job.
func NewSchedule(shards int, o *Settings, seed uint64) (*Schedule, error) {
	if shards < 1 {
		return nil, fmt.Errorf("a graph of %d shards has no groups", shards)
	}
	if err := o.checkShards(shards); err != nil {
		return nil, err
	}
	s := &Schedule{shards: shards, groups: o.groupsOf(shards), sweep: o.Sweep, seed: seed, slots: 1}
	if s.groups == 1 || !o.sweeps() {
		return s, nil
	}
	foreign := shards - shards/s.groups // of the smallest groups
	s.swept = o.Swept
	if s.swept == 0 {
		s.swept = min(foreign, (shards+s.groups-1)/s.groups)
	}
	s.slots = (foreign + s.swept - 1) / s.swept
	return s, nil
}

// Groups returns the number of groups.
func (s *Schedule) Groups() int { return s.groups }

// Slots returns how many super-epochs a sweep has.
func (s *Schedule) Slots() int { return s.slots }

// Base returns the shards that a group always has: those from first to end, at least
// one.
func (s *Schedule) Base(group int) (first, end int) {
	return group * s.shards / s.groups, (group + 1) * s.shards / s.groups
}

// Of returns the group whose base a shard is in.
func (s *Schedule) Of(shard int) int { return ((shard+1)*s.groups - 1) / s.shards }

// Swept returns the shards of others that a group has in a super-epoch, ascending.
func (s *Schedule) Swept(group, super int) []int {
	if s.swept == 0 {
		return nil
	}
	first, end := s.Base(group)
	order := s.order(group, end-first, super/s.slots)
	at := super % s.slots * s.swept
	some := order[min(at, len(order)):min(at+s.swept, len(order))]
	for i, j := range some {
		some[i] = (end + j) % s.shards
	}
	slices.Sort(some)
	return some
}

// has returns the shards that a group has in a super-epoch.
func (s *Schedule) has(group, super int) (shards []int) {
	first, end := s.Base(group)
	for shard := first; shard < end; shard++ {
		shards = append(shards, shard)
	}
	return append(shards, s.Swept(group, super)...)
}

// order returns the order in which a group, of so many shards, meets the others in a
// sweep: 0 is the shard after its own. Where all groups have one size the order is the
// same for all, and alternates so that few groups meet one shard at once; else each
// group has its own.
func (s *Schedule) order(group, own, sweep int) []int {
	foreign := s.shards - own
	order := make([]int, 0, foreign)
	key := keyed.New(s.seed, keyed.Sweep).With(uint64(sweep))
	switch {
	case s.sweep == SweepPublished:
		for j := range foreign {
			order = append(order, j)
		}
	case s.shards%s.groups != 0:
		for j := range foreign {
			order = append(order, j)
		}
		shuffle(order, key.With(uint64(group)))
	default:
		draws := key.Draws()
		classes := make([][]int, own) // of those that are as far behind a base shard
		turns := make([]int, own)
		for r := range classes {
			turns[r] = r
			for j := r; j < foreign; j += own {
				classes[r] = append(classes[r], j)
			}
		}
		mix(turns, &draws)
		for _, class := range classes {
			mix(class, &draws)
		}
		for i := range foreign / own {
			for _, r := range turns {
				order = append(order, classes[r][i])
			}
		}
	}
	return order
}

func shuffle(order []int, key keyed.Key) {
	draws := key.Draws()
	mix(order, &draws)
}

func mix(order []int, draws *keyed.Sequence) {
	for i := len(order) - 1; i > 0; i-- {
		j := draws.Below(uint64(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
}

// A Pair is a group and a shard that is not its own.
type Pair struct{ Group, Shard int }

// Unseen lists the pairs that do not meet in so many super-epochs, which a run misses
// if it ends before its first sweep does, or does not sweep.
func (s *Schedule) Unseen(supers int) (pairs []Pair) {
	met := make([]bool, s.shards)
	for g := range s.groups {
		clear(met)
		for super := range min(supers, s.slots) {
			for _, shard := range s.Swept(g, super) {
				met[shard] = true
			}
		}
		first, end := s.Base(g)
		for shard := range s.shards {
			if (shard < first || shard >= end) && !met[shard] {
				pairs = append(pairs, Pair{g, shard})
			}
		}
	}
	return pairs
}
