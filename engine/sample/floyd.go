package sample

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// scanned is the maximum number of positions drawn without a table of those taken.
const scanned = 64

// A picker draws positions. It reuses its memory.
type picker struct {
	taken []uint32 // for the current row, if its fan-out is large
	each  each
}

// without draws len(to) positions below n without replacement, using Floyd's algorithm; n
// must be larger. The j-th draw is below n-k+j+1, and is replaced by n-k+j if it was
// drawn before.
func (k *picker) without(to []uint32, n uint32, key keyed.Key) {
	if len(to) > scanned {
		k.withoutMany(to, n, key)
		return
	}
	draws := key.Draws()
	last := n - uint32(len(to))
	// mask has a bit for the low bits of each position taken: an unset bit means the
	// position is new, and for small n a set one means it is taken.
	mask := uint64(0)
	for i := range to {
		p := uint32(draws.Below(uint64(last) + 1))
		if mask>>(p&63)&1 != 0 && (n <= 64 || slices.Contains(to[:i], p)) {
			p = last
		}
		mask |= 1 << (p & 63)
		to[i] = p
		last++
	}
}

// withoutMany is without for many positions, using a table.
func (k *picker) withoutMany(to []uint32, n uint32, key keyed.Key) {
	size := 1
	for size < 2*len(to) {
		size *= 2
	}
	k.taken = slices.Grow(k.taken[:0], size)[:size]
	clear(k.taken)
	draws := key.Draws()
	last := n - uint32(len(to))
	for i := range to {
		p := uint32(draws.Below(uint64(last) + 1))
		if !take(k.taken, p) {
			p = last
			take(k.taken, p)
		}
		to[i] = p
		last++
	}
}

// take adds a position to a table whose size is a power of two and which is never full,
// and reports whether it was new. Slots hold the position plus one, or 0 if free.
func take(taken []uint32, p uint32) bool {
	mask := uint32(len(taken) - 1)
	for at := p * 0x9e3779b1 >> 7 & mask; ; at = (at + 1) & mask {
		switch taken[at] {
		case 0:
			taken[at] = p + 1
			return true
		case p + 1:
			return false
		}
	}
}
