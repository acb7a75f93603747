package sample

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// Order puts vertices in the order in which an epoch trains them. The result does not
// depend on their initial order.
func Order(seed, epoch uint64, vertices []uint32) {
	slices.Sort(vertices)
	draws := keyed.New(seed, keyed.Order).With(epoch).Draws()
	for i := len(vertices) - 1; i > 0; i-- {
		j := draws.Below(uint64(i) + 1)
		vertices[i], vertices[j] = vertices[j], vertices[i]
	}
}
