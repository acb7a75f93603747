// Package intids numbers the ids of vertices that are integers of any size and
// spread, in ascending order and with few bytes an id.
package intids

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// IDs numbers integers in ascending order.
//
// While they are collected, those that lie close together from 0 on are bits of
// low, which costs at most half a byte an id, and all others keys of an open hash.
// In the end it is either bits alone, each with its rank, or a sorted slice and a
// hash of positions in it.
type IDs struct {
	memory *source.Memory
	seed   uint64 // so that no file is slow by intent; no number depends on it

	low      []uint64
	lowCount uint64

	keys     []int64 // a power of two, or empty; noKey where there is none
	keyCount uint64
	smallest bool // noKey itself is among the ids

	n        uint32
	identity bool     // 0..n-1: nothing else is held
	ranks    []uint32 // dense: how many bits are set before each word of low
	sorted   []int64
	slots    []uint32 // not dense: 1 + position in sorted; 0: none
}

const (
	noKey = math.MinInt64
	// lowFree is how far bits reach whatever the number of ids: 128 KiB.
	lowFree = 1 << 20
	// spread is how many times more bits than ids there may be.
	spread = 4
)

// Unknown is the number of an id that was never collected. It is larger than every
// vertex's number.
const Unknown uint32 = 1<<32 - 1

// New returns an empty set of ids, whose memory is counted in m.
func New(m *source.Memory) *IDs { return &IDs{memory: m, seed: rand.Uint64()} }

// Identity returns the finished ids 0 to n-1.
func Identity(n uint32) *IDs { return &IDs{n: n, identity: true} }

// Collect adds ids. It may not be called after Finish.
func (s *IDs) Collect(ids []int64) error {
	for _, v := range ids {
		if word := uint64(v) >> 6; word < uint64(len(s.low)) { // negative ones are beyond it
			bit := uint64(1) << (v & 63)
			s.lowCount += (^s.low[word] & bit) >> (v & 63)
			s.low[word] |= bit
		} else if err := s.collectOutside(v); err != nil {
			return err
		}
	}
	return nil
}

func (s *IDs) collectOutside(v int64) error {
	if reach := s.reach(); v >= 0 && uint64(v) < reach {
		if err := s.extend(min(reach, max(uint64(v)+1, 128*uint64(len(s.low))))); err != nil {
			return err
		}
		return s.Collect([]int64{v})
	}
	if v == noKey {
		s.smallest = true
		return nil
	}
	if (s.keyCount+1)*4 > uint64(len(s.keys))*3 {
		if err := s.rehash(); err != nil {
			return err
		}
		return s.Collect([]int64{v}) // it may lie among the bits by now
	}
	if place := s.place(v); s.keys[place] == noKey {
		s.keys[place] = v
		s.keyCount++
	}
	return nil
}

// reach is the first id that bits are too dear for.
func (s *IDs) reach() uint64 { return lowFree + spread*(s.lowCount+s.keyCount) }

func (s *IDs) extend(n uint64) error {
	words := int(n+63) / 64
	low, err := source.Enlarge(s.memory, s.low, words-len(s.low), 8)
	if err != nil {
		return err
	}
	s.low = low[:words]
	return nil
}

func (s *IDs) hash(v int64) uint64 {
	h := uint64(v) ^ s.seed
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// place is where v is in keys, or would be.
func (s *IDs) place(v int64) uint64 {
	mask := uint64(len(s.keys) - 1)
	for at := s.hash(v) & mask; ; at = (at + 1) & mask {
		if k := s.keys[at]; k == v || k == noKey {
			return at
		}
	}
}

// rehash moves keys that bits have become cheap enough for, and makes room for
// more of the others.
func (s *IDs) rehash() error {
	if err := s.lower(s.reach()); err != nil {
		return err
	}
	room := max(1024, uint64(len(s.keys)))
	if s.keyCount*2 >= room {
		room *= 2
	}
	if err := s.memory.Grow(uint64(len(s.keys))*8, room*8); err != nil {
		return err
	}
	old := s.keys
	s.keys = slices.Repeat([]int64{noKey}, int(room))
	s.keyCount = 0
	for _, v := range old {
		if v != noKey {
			s.keys[s.place(v)] = v
			s.keyCount++
		}
	}
	return nil
}

// lower turns the keys below reach into bits. What is left in keys is no longer in
// its place.
func (s *IDs) lower(reach uint64) error {
	var top uint64
	for _, v := range s.keys {
		if v >= 0 && uint64(v) < reach {
			top = max(top, uint64(v)+1)
		}
	}
	if top > uint64(len(s.low))*64 {
		if err := s.extend(top); err != nil {
			return err
		}
	}
	for i, v := range s.keys {
		if v >= 0 && uint64(v)>>6 < uint64(len(s.low)) {
			s.keys[i] = noKey
			s.keyCount--
			if err := s.Collect([]int64{v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// SoFar returns how many different ids were collected.
func (s *IDs) SoFar() int {
	n := int(s.lowCount)
	if s.smallest {
		n++
	}
	for _, v := range s.keys { // bits may have come to reach beyond some of them
		if v != noKey && !s.isLow(v) {
			n++
		}
	}
	return n
}

// isLow reports whether an id is among the bits.
func (s *IDs) isLow(v int64) bool {
	word := uint64(v) >> 6
	return word < uint64(len(s.low)) && s.low[word]>>(v&63)&1 == 1
}

// Len returns how many ids there are, Identity whether they are 0 to Len()-1, and
// Sorted, if they are not, the ids in order: the slice is the set's own. All are for
// after Finish.
func (s *IDs) Len() uint32     { return s.n }
func (s *IDs) Identity() bool  { return s.identity }
func (s *IDs) Sorted() []int64 { return s.sorted }

// Finish numbers what was collected.
func (s *IDs) Finish() error {
	if err := s.lower(s.reach()); err != nil {
		return err
	}
	n := s.lowCount + s.keyCount
	if s.smallest {
		n++
	}
	if n > graph.MaxVertices {
		return fmt.Errorf("there are %d vertices and a graph has at most %d: cut it before it is imported", n, graph.MaxVertices)
	}
	s.n = uint32(n)
	if n > 0 && s.keyCount == 0 && !s.smallest {
		s.cut()
		if s.identity = uint64(len(s.low)) == (n+63)/64 && bits.Len64(s.low[len(s.low)-1]) == int((n-1)%64)+1; s.identity {
			s.drop()
			return nil
		}
	}
	if err := s.sort(); err != nil {
		return err
	}
	if s.keyCount == 0 && !s.smallest {
		return s.rank()
	}
	s.drop()
	return s.index()
}

// trim cuts the words of low that hold nothing.
func (s *IDs) cut() {
	for len(s.low) > 0 && s.low[len(s.low)-1] == 0 {
		s.low = s.low[:len(s.low)-1]
	}
}

// drop forgets what was collected, once it is held in another way.
func (s *IDs) drop() {
	s.memory.Free(uint64(cap(s.low))*8 + uint64(len(s.keys))*8)
	s.low, s.keys = nil, nil
}

// sort makes the slice of all ids.
func (s *IDs) sort() error {
	if err := s.memory.Grow(0, uint64(s.n)*8); err != nil {
		return err
	}
	s.sorted = make([]int64, 0, s.n)
	if s.smallest {
		s.sorted = append(s.sorted, noKey)
	}
	for word, set := range s.low {
		for ; set != 0; set &= set - 1 {
			s.sorted = append(s.sorted, int64(word)<<6+int64(bits.TrailingZeros64(set)))
		}
	}
	for _, v := range s.keys {
		if v != noKey {
			s.sorted = append(s.sorted, v)
		}
	}
	slices.Sort(s.sorted)
	return nil
}

func (s *IDs) rank() error {
	if err := s.memory.Grow(0, uint64(len(s.low))*4); err != nil {
		return err
	}
	s.ranks = make([]uint32, len(s.low))
	rank := uint32(0)
	for i, set := range s.low {
		s.ranks[i] = rank
		rank += uint32(bits.OnesCount64(set))
	}
	return nil
}

func (s *IDs) index() error {
	room := uint64(1) << bits.Len64(uint64(s.n)*3/2)
	if err := s.memory.Grow(0, room*4); err != nil {
		return err
	}
	s.slots = make([]uint32, room)
	for i, v := range s.sorted {
		at := s.hash(v) & (room - 1)
		for s.slots[at] != 0 {
			at = (at + 1) & (room - 1)
		}
		s.slots[at] = uint32(i) + 1
	}
	return nil
}

// Number returns the number of an id, or Unknown.
func (s *IDs) Number(v int64) uint32 {
	if s.identity {
		if uint64(v) >= uint64(s.n) { // negative ones too
			return Unknown
		}
		return uint32(v)
	}
	if s.slots == nil {
		word, bit := uint64(v)>>6, uint64(1)<<(v&63)
		if word >= uint64(len(s.low)) || s.low[word]&bit == 0 {
			return Unknown
		}
		return s.ranks[word] + uint32(bits.OnesCount64(s.low[word]&(bit-1)))
	}
	mask := uint64(len(s.slots) - 1)
	for at := s.hash(v) & mask; ; at = (at + 1) & mask {
		slot := s.slots[at]
		if slot == 0 {
			return Unknown
		}
		if s.sorted[slot-1] == v {
			return slot - 1
		}
	}
}
