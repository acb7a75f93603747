package plan

import (
	"cmp"
	"maps"
	"slices"
)

// OrdinarySpeed is the speed of an ordinary server, and is assumed if no node's speed is
// known.
const OrdinarySpeed = 1000

// Weights returns the members' relative shares of data and work. Speeds that differ by
// less than a half are of one class and weigh the same, since that much may be noise, and
// noise must move no shard. A class begins at its slowest member and not at a fixed speed,
// which would part equal nodes that are measured on both sides of it. A member that has just
// joined has no speed yet, and counts as the middle one of the others: what it is given at
// first it would else have to give back.
func Weights(s *State) map[string]uint64 {
	var known []uint64
	for _, m := range s.Members {
		if m.Speed > 0 {
			known = append(known, m.Speed)
		}
	}
	usual := uint64(OrdinarySpeed)
	if slices.Sort(known); len(known) > 0 {
		usual = known[(len(known)-1)/2]
	}
	speed := func(id string) uint64 { return cmp.Or(s.Members[id].Speed, usual) }
	weights, class := make(map[string]uint64, len(s.Members)), uint64(0)
	for _, id := range slices.SortedFunc(maps.Keys(s.Members), func(a, b string) int { return cmp.Compare(speed(a), speed(b)) }) {
		if speed(id) >= class+class/2 {
			class = speed(id)
		}
		weights[id] = class
	}
	return weights
}
