package partition

import "math/bits"

// tally sums weights by key in an open-addressed table, which is reset by clearing only
// the used slots. Keys are kept in the order in which they were first seen.
type tally struct {
	slot []int32  // position in keys plus one; 0 is free
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
func newTally(keys int) *tally { return &tally{slot: make([]int32, 1<<tallySize(keys))} }

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
			t.slot[at] = int32(len(t.keys))
			return
		}
		if t.keys[s-1] == key {
			t.sums[s-1] = saturate(t.sums[s-1], weight)
			return
		}
		at = (at + 1) & t.mask
	}
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
