package nn_test

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// stages is the logits of all vertices, stage by stage, each in three parts.
func (r *run) stages(g *graph, sparse bool) []float64 {
	parts := [][]uint32{{0, 1, 2, 3}, {4}, {}}
	parts[2] = g.all()[5:]
	var x, carry tensor.Matrix
	for i, info := range r.Stages() {
		next := r.arena.Alloc(r.device.Type(), g.n, info.Out)
		beside := r.arena.Alloc(r.device.Type(), g.n, info.CarryOut)
		for _, vertices := range parts {
			var in nn.Input
			at := int(vertices[0])
			ownX, ownCarry := x, carry
			var y, c tensor.Matrix
			if info.Hops > 0 {
				b := g.block(vertices, 0, r.Form(), true)
				if i == 0 {
					in = g.input(r.device, g.all(), sparse)
				}
				y, c = r.Stage(i, &b, in, ownX, ownCarry)
			} else {
				if i == 0 {
					in = g.input(r.device, vertices, sparse)
				} else {
					ownX = x.RowRange(at, len(vertices))
				}
				if info.CarryIn > 0 {
					ownCarry = carry.RowRange(at, len(vertices))
				}
				y, c = r.Stage(i, nil, in, ownX, ownCarry)
			}
			r.device.Combine(next.RowRange(at, len(vertices)), 1, y, 0, tensor.Matrix{})
			if info.CarryOut > 0 {
				r.device.Combine(beside.RowRange(at, len(vertices)), 1, c, 0, tensor.Matrix{})
			}
		}
		x, carry = next, beside
	}
	return r.read(x)
}
