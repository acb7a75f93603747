package plan

import (
	"cmp"
	"slices"
)

const (
	// OrdinarySpeed is that of an ordinary server; a node whose speed is not known counts
	// as one.
	OrdinarySpeed = 1000
	// unlike is how many times faster or slower than the usual a node must be for that
	// to count. What is measured on a busy machine may be off by two or three, and
	// nothing is moved for noise.
	unlike = 4
)

// UsualSpeed is the median of the members'.
func UsualSpeed(s *State) uint64 {
	speeds := make([]uint64, 0, len(s.Members))
	for _, p := range s.Members {
		speeds = append(speeds, cmp.Or(p.Speed, OrdinarySpeed))
	}
	slices.Sort(speeds)
	return speeds[len(speeds)/2]
}

// WeightOf is a node's share of what there is to hold and to do, beside others' weights,
// by its speed and the usual one.
func WeightOf(speed, usual uint64) uint64 {
	speed = cmp.Or(speed, OrdinarySpeed)
	if speed < usual*unlike && usual < speed*unlike {
		return usual
	}
	return speed
}
