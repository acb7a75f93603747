package p3

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A tree adds up matrices of one shape in the order of exchange.Summer: that of the
// binary tree over their numbers, whoever computed which. It is for sums that stay on
// the device.
type tree struct {
	device tensor.Device
	arena  tensor.Arena
	size   int // elements of the largest matrix before the next reset

	rows, cols int
	stack      []partial // each the sum of all that came before the next
	idle       []tensor.Matrix
}

// A partial is the sum of some matrices.
type partial struct {
	number int           // of one of them
	flat   tensor.Matrix // its memory
	sum    tensor.Matrix
}

// reset drops all memory, since the arena is reset.
func (t *tree) reset(d tensor.Device, a tensor.Arena, size int) {
	t.device, t.arena, t.size = d, a, size
	t.stack, t.idle = t.stack[:0], t.idle[:0]
}

// begin begins a sum of matrices of this shape, and ends the one before.
func (t *tree) begin(rows, cols int) {
	t.rows, t.cols = rows, cols
	for _, p := range t.stack {
		t.idle = append(t.idle, p.flat)
	}
	t.stack = t.stack[:0]
}

// next returns where to put the next matrix, with any content. Numbers ascend.
func (t *tree) next(number int) tensor.Matrix {
	// Add up all partial sums whose other half can't follow.
	for n := len(t.stack); n > 1 && meet(t.stack[n-2].number, t.stack[n-1].number) < meet(t.stack[n-1].number, number); n-- {
		t.join()
	}
	var p partial
	p.number = number
	if n := len(t.idle); n > 0 {
		p.flat, t.idle = t.idle[n-1], t.idle[:n-1]
	} else {
		p.flat = t.arena.Alloc(t.device.Type(), 1, t.size)
	}
	p.sum = p.flat.View(0, 1, 0, t.rows*t.cols).Reshape(t.rows, t.cols)
	t.stack = append(t.stack, p)
	return p.sum
}

// join adds the last partial sum to the one before.
func (t *tree) join() {
	n := len(t.stack)
	left, right := &t.stack[n-2], &t.stack[n-1]
	t.device.Combine(left.sum, 1, left.sum, 1, right.sum)
	left.number = right.number
	t.idle = append(t.idle, right.flat)
	t.stack = t.stack[:n-1]
}

// sum returns the sum of all, valid until the next begin; zeros, if there were none.
func (t *tree) sum() tensor.Matrix {
	if len(t.stack) == 0 {
		t.device.Zero(t.next(0))
	}
	for len(t.stack) > 1 {
		t.join()
	}
	return t.stack[0].sum
}

// meet returns the level of the smallest span of the tree that holds two numbers.
func meet(a, b int) int { return bits.Len(uint(a ^ b)) }
