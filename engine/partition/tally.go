package partition

import (
	"math/bits"
	"slices"
)

// tally sums weights by key in an open-addressed table, which is reset by clearing only
// the used slots. Keys are kept in the order in which they were first seen.
type tally struct {
	slot []uint64 // the key, and below it its position in keys plus one; 0 is free
	keys []uint32 // keys in the table
	sums []uint32 // parallel to keys
	mask uint32
	size uint // bits of mask
}

// tallyLimit is the maximum number of keys in a tally; callers that may have more use
// another method.
const tallyLimit = 1 << 14

// newTally returns a tally for keys below keys, of which at most tallyLimit occur between
// two resets.
func newTally(keys int) *tally { return &tally{slot: make([]uint64, 1<<tallySize(keys))} }

// tallySize returns the logarithm of the number of slots for so many keys: at least twice
// as many.
func tallySize(keys int) uint { return uint(bits.Len(uint(min(max(keys, 8), tallyLimit)-1))) + 1 }

// expect sizes the tally, which must be empty, for at most n entries: fewer slots are
// faster.
func (t *tally) expect(n int) {
	t.size = min(tallySize(n), uint(bits.Len(uint(len(t.slot)-1))))
	t.mask = 1<<t.size - 1
}

func (t *tally) add(key, weight uint32) {
	at := key * 2654435769 >> (32 - t.size)
	for {
		s := t.slot[at]
		if s == 0 {
			t.keys = append(t.keys, key)
			t.sums = append(t.sums, weight)
			t.slot[at] = uint64(key)<<32 | uint64(len(t.keys))
			return
		}
		if uint32(s>>32) == key {
			i := uint32(s) - 1
			t.sums[i] = saturate(t.sums[i], weight)
			return
		}
		at = (at + 1) & t.mask
	}
}

// addEach adds 1 for the label of every step-th of some vertices, of which the tally expects
// no more. It returns false at a vertex that has no label.
func (t *tally) addEach(row, label []uint32, step int) bool {
	most := (len(row) + step - 1) / step
	keys, sums := slices.Grow(t.keys[:0], most)[:most], slices.Grow(t.sums[:0], most)[:most]
	slot, shift, mask, n := t.slot, 32-t.size, t.mask, 0
	ok := true
	for i := 0; i < len(row); i += step {
		u := row[i]
		if int(u) >= len(label) {
			ok = false
			break
		}
		key := label[u]
		for at := key * 2654435769 >> shift; ; at = (at + 1) & mask {
			s := slot[at]
			if s == 0 {
				keys[n], sums[n] = key, 1
				n++
				slot[at] = uint64(key)<<32 | uint64(n)
				break
			}
			if uint32(s>>32) == key {
				sums[uint32(s)-1]++
				break
			}
		}
	}
	t.keys, t.sums = keys[:n], sums[:n]
	return ok
}

func (t *tally) reset() {
	if len(t.keys)*4 > int(t.mask) {
		clear(t.slot[:t.mask+1])
	} else {
		for _, key := range t.keys {
			at := key * 2654435769 >> (32 - t.size)
			for t.slot[at] != 0 {
				t.slot[at] = 0
				at = (at + 1) & t.mask
			}
		}
	}
	t.keys, t.sums = t.keys[:0], t.sums[:0]
}

// saturate adds edge weights. Only absurd weights overflow 32 bits; the cut is then
// underestimated, with no other effect.
func saturate(a, b uint32) uint32 {
	if s := a + b; s >= a {
		return s
	}
	return 1<<32 - 1
}
