package sample

import (
	"math"
	"slices"
	"unsafe"
)

// seen maps vertices to their numbers in the batch.
type seen struct {
	// dense holds stamp<<32 | number for each vertex of the graph; a different stamp
	// belongs to an earlier batch.
	dense []uint64
	stamp uint32
	// Without dense, sparse is an open-addressed table; its size is a power of two and at
	// most half of it is used. A slot holds number<<32 | vertex+1, or 0.
	sparse []uint64
	shift  uint // of the hash, to get a slot
}

// sparseLeast is the minimum number of slots.
const sparseLeast = 1 << 12

func newSeen(vertices int, dense bool) seen {
	if dense {
		return seen{dense: inLargePages[uint64](vertices)}
	}
	n := seen{}
	n.resize(sparseLeast)
	return n
}

func (n *seen) resize(places int) {
	n.sparse = make([]uint64, places)
	n.shift = 64
	for ; places > 1; places /= 2 {
		n.shift--
	}
}

// begin removes all vertices.
func (n *seen) begin() {
	if n.dense == nil {
		clear(n.sparse)
		return
	}
	n.stamp++
	if n.stamp == 0 {
		clear(n.dense)
		n.stamp = 1
	}
}

// prefetch prefetches what number will read for these vertices.
func (n *seen) prefetch(ids *uint32, count int) {
	if n.dense != nil {
		prefetch(unsafe.Pointer(&n.dense[0]), ids, count, 3)
		return
	}
	var at [group]uint32
	for some := range slices.Chunk(unsafe.Slice(ids, count), len(at)) {
		for i, v := range some {
			at[i] = n.place(v)
		}
		prefetch(unsafe.Pointer(&n.sparse[0]), &at[0], len(some), 3)
	}
}

func (n *seen) place(v uint32) uint32 {
	return uint32(uint64(v+1) * 0x9e3779b97f4a7c15 >> n.shift)
}

// first numbers the vertices that a batch begins with. It returns a duplicate if there is
// one.
func (n *seen) first(vertices []uint32) (uint32, bool) {
	n.reserve(0, vertices)
	for i, v := range vertices {
		if n.dense != nil {
			if uint32(n.dense[v]>>32) == n.stamp {
				return v, false
			}
			n.dense[v] = uint64(n.stamp)<<32 | uint64(i)
			continue
		}
		if n.find(v, uint32(i)) != uint32(i) {
			return v, false
		}
	}
	return 0, true
}

// number replaces vertices by their numbers and appends new ones.
func (n *seen) number(ids []int32, vertices []uint32) []uint32 {
	next := len(vertices)
	vertices = slices.Grow(vertices, len(ids)+1)
	if n.dense == nil {
		n.reserve(len(ids), vertices)
		for i, v := range ids {
			number := n.find(uint32(v), uint32(next))
			ids[i] = int32(number)
			if int(number) == next {
				vertices = append(vertices, uint32(v))
				next++
			}
		}
		return vertices
	}
	next = numberDense(n.dense, uint64(n.stamp)<<32, ids, vertices[:next+len(ids)+1], next)
	return vertices[:next]
}

// numberDense is number for dense, with the stamp in the upper half. Whether a vertex is
// new can't be predicted, so the code does not branch on it.
func numberDense(dense []uint64, stamp uint64, ids []int32, vertices []uint32, next int) int {
	for i, v := range ids {
		number := dense[uint32(v)] ^ stamp
		after := next
		if number > math.MaxUint32 {
			number = uint64(next)
		}
		if number == uint64(next) {
			after++
		}
		vertices[next] = uint32(v)
		dense[uint32(v)] = stamp | number
		ids[i] = int32(number)
		next = after
	}
	return next
}

// find returns the number of v, which is next if it is new.
func (n *seen) find(v, next uint32) uint32 {
	mask := uint32(len(n.sparse) - 1)
	for at := n.place(v); ; at = (at + 1) & mask {
		switch e := n.sparse[at&mask]; {
		case e == 0:
			n.sparse[at&mask] = uint64(next)<<32 | uint64(v+1)
			return next
		case uint32(e) == v+1:
			return uint32(e >> 32)
		}
	}
}

// reserve makes room for more vertices beside those of the batch.
func (n *seen) reserve(more int, vertices []uint32) {
	if n.dense != nil {
		return
	}
	places := len(n.sparse)
	for places < 2*(len(vertices)+more) {
		places *= 2
	}
	if places == len(n.sparse) {
		return
	}
	n.resize(places)
	for i, v := range vertices {
		n.find(v, uint32(i))
	}
}
