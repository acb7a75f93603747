package p3

import (
	"math/bits"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A tree adds up matrices of one shape in the order of exchange.Summer: that of the
// binary tree over their numbers, whoever made which. It is for what does not leave the
// device between two sums.
type tree struct {
	device tensor.Device
	arena  tensor.Arena
	size   int // elements of the largest that come before the next reset

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

// reset forgets all memory, since the arena is reset.
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

// next is where the next matrix is to be put, which holds anything. Numbers ascend.
func (t *tree) next(number int) tensor.Matrix {
	// All that this one can't be a half of is added up.
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

// sum is that of all, until the next begin; zeros, if there were none.
func (t *tree) sum() tensor.Matrix {
	if len(t.stack) == 0 {
		t.device.Zero(t.next(0))
	}
	for len(t.stack) > 1 {
		t.join()
	}
	return t.stack[0].sum
}

// meet is the level of the least span of the tree that holds two numbers.
func meet(a, b int) int { return bits.Len(uint(a ^ b)) }
