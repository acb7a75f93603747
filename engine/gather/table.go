package gather

import "math"

// A table maps vertices to marks. It is open-addressed: its memory follows from the
// vertices that it holds, and not from the graph.
type table struct {
	// A slot is mark<<32 | vertex, and free if its mark is below base.
	slots []uint64
	shift uint // of the hash, to get a slot
	base  uint32
}

// leastSlots is the minimum number of slots. At most half of them are used.
const leastSlots = 1 << 8

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
	for at := v * 0x9e3779b1 >> (t.shift & 31); ; at++ {
		slot := &t.slots[at&mask]
		if uint32(*slot>>32) < t.base || uint32(*slot) == v {
			return slot
		}
	}
}

// next drops all vertices, whose marks end at most this far above base.
func (t *table) next(above int) {
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
