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
