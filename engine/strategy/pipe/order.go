package pipe

import "github.com/hopmesh/hopmesh/engine/keyed"

// Order is in which order an epoch has the positions of all ways go forward: the same in
// all stages and ways. Epochs count from 0.
func Order(to []int, seed uint64, epoch, positions int, shuffle bool) []int {
	to = to[:0]
	for i := range positions {
		to = append(to, i)
	}
	if !shuffle {
		return to
	}
	draws := keyed.New(seed, keyed.Chunks).With(uint64(epoch)).Draws()
	for i := positions - 1; i > 0; i-- {
		j := draws.Below(uint64(i) + 1)
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// Age is by how many epochs a history is older than the epoch that sees it, where it is
// kept for so many epochs: from 1 to period. In the first period histories are zeros.
func Age(epoch, period int) int { return epoch - (period*(epoch/period) - 1) }

// Slots is how many turns one direction of an epoch takes: at each, every stage that has
// something to do does one position.
func Slots(positions, stages int) int { return positions + stages - 1 }

// At is which place in the order a stage is at in a slot of the forward direction, and
// whether it has something to do then. Backward, stages and places are reversed.
func At(slot, stage, positions int) (place int, busy bool) {
	place = slot - stage
	return place, place >= 0 && place < positions
}
