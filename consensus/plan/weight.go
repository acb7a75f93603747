package plan

import (
	"cmp"
	"slices"
)

const (
	// OrdinarySpeed is the speed of an ordinary server, and is assumed if a node's
	// speed is unknown.
	OrdinarySpeed = 1000
	// unlike is how many times faster or slower than usual a node must be for its speed
	// to matter. A measurement on a busy machine may be off by a factor of two or
	// three, and noise must not move shards.
	unlike = 4
)

// UsualSpeed returns the median speed of the members.
func UsualSpeed(s *State) uint64 {
	speeds := make([]uint64, 0, len(s.Members))
	for _, p := range s.Members {
		speeds = append(speeds, cmp.Or(p.Speed, OrdinarySpeed))
	}
	slices.Sort(speeds)
	return speeds[len(speeds)/2]
}

// WeightOf returns a node's relative share of data and work, from its speed and the
// usual speed.
func WeightOf(speed, usual uint64) uint64 {
	speed = cmp.Or(speed, OrdinarySpeed)
	if speed < usual*unlike && usual < speed*unlike {
		return usual
	}
	return speed
}
