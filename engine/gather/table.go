package gather

import "math"

// A table maps vertices to marks. It is open-addressed: its memory follows from the
// vertices that it holds, and not from the graph.
type table struct {
	// A slot is mark<<32 | vertex, and free if its mark is below base.
	slots []uint64
	shift uint // of the hash, to get a slot
	base  uint32
	used  int    // slots
	read  uint64 // of touch, so that it is not left out
}

// leastSlots is the minimum number of slots. At most half of them are used.
const leastSlots = 1 << 8

// spread is the factor of the hash, whose upper bits are the slot.
const spread = 0x9e3779b1

// reserve makes room for so many vertices in an empty table.
func (t *table) reserve(vertices int) {
	slots := max(leastSlots, len(t.slots))
	for slots < 2*vertices {
		slots *= 2
	}
	if slots == len(t.slots) {
		return
	}
	t.slots, t.base, t.shift = nil, 1, 32
	t.slots = make([]uint64, slots)
	for ; slots > 1; slots /= 2 {
		t.shift--
	}
}

// TableBytes returns the memory of the table that several sets, of so many vertices in all,
// are gathered with.
func TableBytes(vertices int) uint64 {
	slots := leastSlots
	for slots < 2*vertices {
		slots *= 2
	}
	return 8 * uint64(slots)
}

// at returns the slot of a vertex: its own, or the free one where it belongs.
func (t *table) at(v uint32) *uint64 {
	mask := uint32(len(t.slots) - 1)
	for at := v * spread >> (t.shift & 31); ; at++ {
		slot := &t.slots[at&mask]
		if uint32(*slot>>32) < t.base || uint32(*slot) == v {
			return slot
		}
	}
}

// use gives the slot of a vertex, which is free, a mark, and grows where more than half of
// the slots are used.
func (t *table) use(slot *uint64, v, mark uint32) {
	*slot = uint64(mark)<<32 | uint64(v)
	if t.used++; 2*t.used <= len(t.slots) {
		return
	}
	old, base := t.slots, t.base
	t.reserve(len(old))
	for _, slot := range old {
		if mark := uint32(slot >> 32); mark >= base { // marks begin at the new base, so that they do not run out
			*t.at(uint32(slot)) = uint64(mark-base+t.base)<<32 | uint64(uint32(slot))
		}
	}
}

// touch reads where the searches for some vertices begin, so that these slots are in the
// cache: unlike searches, which wait for each other's branches, reads overlap.
func (t *table) touch(vertices []uint32) {
	mask, shift, read := uint32(len(t.slots)-1), t.shift&31, uint64(0)
	for _, v := range vertices {
		read ^= t.slots[v*spread>>shift&mask]
	}
	t.read = read
}

// next drops all vertices, whose marks end at most this far above base.
func (t *table) next(above int) {
	t.used = 0
	// The next marks may be as many as half of the slots.
	if uint64(t.base)+uint64(above)+1+uint64(len(t.slots)) >= math.MaxUint32 {
		clear(t.slots)
		t.base = 1
		return
	}
	t.base += uint32(above) + 1
}

// bytes returns the memory of the table.
func (t *table) bytes() uint64 { return 8 * uint64(len(t.slots)) }
