package sample

import (
	"math"
	"slices"
	"unsafe"
)

// seen maps vertices to their numbers in the batch.
//
// Its memory follows from the batch and not from the graph: an open-addressed table of a
// power of two of slots, of which a batch uses at most an eighth. A slot for each vertex of
// the graph is faster where these fit caches, and is used where it takes at most four times
// as much. So there are at most 512 bytes for each vertex of the largest batch.
type seen struct {
	vertices int // of the graph
	used     int // numbers given since begin

	// sparse has base+number in the upper half of a slot, and the vertex in the lower. What
	// is below base is of an earlier batch, and free.
	sparse []uint64
	shift  uint // of the hash, to get a slot
	base   uint32

	// dense holds stamp<<32 | number for each vertex of the graph, if it is not nil; a
	// different stamp belongs to an earlier batch.
	dense []uint64
	stamp uint32

	ids   []int32 // of again
	fresh []uint32
}

const (
	// leastSlots is the minimum number of slots.
	leastSlots = 1 << 12
	// slotsPer is the minimum number of slots for each vertex of a batch: with fewer, many
	// searches begin where another vertex is, which the processor does not predict.
	slotsPer = 8
	// densePer is how many vertices of the graph there may be for each slot where the table
	// has all of them.
	densePer = 4
)

func newSeen(vertices int) seen {
	n := seen{vertices: vertices}
	n.resize(leastSlots)
	return n
}

// TableBytes returns the memory that a sampler needs beside its batch, if so many vertices are
// in it, of a graph of so many: see seen.
func TableBytes(batch, vertices int) uint64 {
	slots := leastSlots
	for slots < slotsPer*min(batch, vertices) && slots < vertices/densePer {
		slots *= 2
	}
	if slots >= vertices/densePer {
		slots = vertices
	}
	return 8 * uint64(slots)
}

// resize replaces the table by an empty one.
func (n *seen) resize(slots int) {
	n.used = 0
	if slots >= n.vertices/densePer {
		n.sparse, n.dense, n.stamp = nil, inLargePages[uint64](n.vertices), 1
		return
	}
	n.sparse, n.base, n.shift = nil, 1, 32 // the old one is given up before the larger one is taken
	n.sparse = inLargePages[uint64](slots)
	for ; slots > 1; slots /= 2 {
		n.shift--
	}
}

// begin removes all vertices.
func (n *seen) begin() {
	used := n.used
	n.used = 0
	if n.dense != nil {
		n.stamp++
		if n.stamp == 0 {
			clear(n.dense)
			n.stamp = 1
		}
		return
	}
	// The next batch has fewer vertices than there are slots.
	if uint64(n.base)+uint64(used)+uint64(len(n.sparse)) > math.MaxUint32 {
		clear(n.sparse)
		n.base = 1
		return
	}
	n.base += uint32(used)
}

// prefetch prefetches what number will read for these vertices.
func (n *seen) prefetch(ids *uint32, count int) {
	if n.dense != nil {
		prefetch(unsafe.Pointer(&n.dense[0]), ids, count, 3)
		return
	}
	prefetchHashed(unsafe.Pointer(&n.sparse[0]), ids, count, spread, n.shift)
}

// spread is the factor of the hash, whose upper bits are the slot.
const spread = 0x9e3779b1

// place returns the slot where the search for a vertex begins.
func place(v uint32, shift uint) uint32 { return v * spread >> (shift & 31) }

// first numbers the vertices that a batch begins with. It returns a duplicate if there is
// one.
func (n *seen) first(vertices []uint32) (uint32, bool) {
	n.reserve(len(vertices), nil)
	if n.again(vertices) == len(vertices) {
		return 0, true
	}
	for i, v := range vertices {
		if n.ids[i] != int32(i) {
			return v, false
		}
	}
	return 0, true
}

// again gives vertices their numbers, in order, and returns how many are distinct.
func (n *seen) again(vertices []uint32) int {
	n.ids = slices.Grow(n.ids[:0], len(vertices))[:len(vertices)]
	n.fresh = slices.Grow(n.fresh[:0], len(vertices)+1)[:len(vertices)+1]
	for i, v := range vertices {
		n.ids[i] = int32(v)
	}
	for first := 0; first < len(vertices); first += group {
		n.prefetch(&vertices[first], min(group, len(vertices)-first))
	}
	return n.give(n.ids, n.fresh, 0)
}

// number replaces vertices by their numbers and appends new ones.
func (n *seen) number(ids []int32, vertices []uint32) []uint32 {
	next := len(vertices)
	vertices = slices.Grow(vertices, len(ids)+1)
	n.reserve(len(ids), vertices)
	return vertices[:n.give(ids, vertices[next:next+len(ids)+1], next)]
}

// give replaces vertices by their numbers, of which next is the first free one, and sets
// fresh to the new vertices. It returns the first free number afterwards.
func (n *seen) give(ids []int32, fresh []uint32, next int) int {
	if n.dense != nil {
		n.used = numberDense(n.dense, uint64(n.stamp)<<32, ids, fresh, next)
	} else {
		n.used = numberSparse(n.sparse, n.shift, n.base, ids, fresh, next)
	}
	return n.used
}

// numberDense is give for dense, with the stamp in the upper half. Whether a vertex is
// new can't be predicted, so the code does not branch on it.
func numberDense(dense []uint64, stamp uint64, ids []int32, fresh []uint32, next int) int {
	first := next
	for i, v := range ids {
		number := dense[uint32(v)] ^ stamp
		after := next
		if number > math.MaxUint32 {
			number = uint64(next)
		}
		if number == uint64(next) {
			after++
		}
		fresh[next-first] = uint32(v)
		dense[uint32(v)] = stamp | number
		ids[i] = int32(number)
		next = after
	}
	return next
}

// numberSparse is give for sparse. It branches only on whether another vertex is in the
// slot where a search begins, which few are.
func numberSparse(sparse []uint64, shift uint, base uint32, ids []int32, fresh []uint32, next int) int {
	table, mask := unsafe.Pointer(unsafe.SliceData(sparse)), uintptr(len(sparse)-1)
	fresh = fresh[:len(ids)+1]
	n := uintptr(0) // new ones
	end := uint32(next)
	for i, v := range ids {
		at := uintptr(place(uint32(v), shift)) & mask
		slot := *(*uint64)(unsafe.Add(table, 8*at))
		number := uint32(slot>>32) - base
		if taken(slot, number, end, v) {
			at, number = probe(table, mask, at, base, end, v)
		}
		number = min(number, end)
		after := end
		if number == end {
			after++
		}
		*(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(fresh)), 4*n)) = uint32(v)
		*(*uint64)(unsafe.Add(table, 8*at)) = uint64(base+number)<<32 | uint64(uint32(v))
		ids[i] = int32(number)
		n += uintptr(after - end)
		end = after
	}
	return int(end)
}

// taken reports whether a slot with a number of the batch belongs to another vertex than
// v: its number is below end, and its vertex differs. This is one branch and not two.
func taken(slot uint64, number, end uint32, v int32) bool {
	return (int64(number)-int64(end))>>63&int64(uint32(slot)^uint32(v)) != 0
}

// probe looks for a vertex in the slots behind one that is taken.
//
//go:noinline
func probe(table unsafe.Pointer, mask, at uintptr, base, end uint32, v int32) (uintptr, uint32) {
	for {
		at = (at + 1) & mask
		slot := *(*uint64)(unsafe.Add(table, 8*at))
		number := uint32(slot>>32) - base
		if !taken(slot, number, end, v) {
			return at, number
		}
	}
}

// reserve makes room for more vertices beside those of the batch.
func (n *seen) reserve(more int, vertices []uint32) {
	if n.dense != nil {
		return
	}
	most := min(len(vertices)+more, n.vertices)
	slots := len(n.sparse)
	for slots < slotsPer*most {
		slots *= 2
	}
	if slots == len(n.sparse) {
		return
	}
	n.resize(slots)
	n.again(vertices)
}
