// Package textids numbers the ids of vertices that are text, in the order in which they first appear.
package textids

import (
	"bytes"
	"fmt"
	"hash/maphash"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// IDs numbers strings in the order in which they first appear. They lie one after
// another in bytes, as a graph.Source gives them out.
type IDs struct {
	memory  *source.Memory
	seed    maphash.Seed // no number depends on it
	bytes   []byte
	offsets []int64
	// slots are a power of two: 1 + number, and above it 32 bits of the hash, so that
	// other strings are seldom looked at; 0: none.
	slots []uint64
}

// New returns an empty set of ids, whose memory is counted in m.
func New(m *source.Memory) *IDs { return &IDs{memory: m, seed: maphash.MakeSeed()} }

// Len returns how many ids there are.
func (s *IDs) Len() int { return max(len(s.offsets), 1) - 1 }

func (s *IDs) at(i uint32) []byte { return s.bytes[s.offsets[i]:s.offsets[i+1]] }

func (s *IDs) hash(id []byte) uint64 { return maphash.Bytes(s.seed, id) << 32 }

// place is the slot of an id with this hash, or the empty one where it belongs.
func (s *IDs) place(id []byte, hash uint64) uint64 {
	mask := uint64(len(s.slots) - 1)
	for at := hash >> 32 & mask; ; at = (at + 1) & mask {
		slot := s.slots[at]
		if slot == 0 || (slot^hash)>>32 == 0 && bytes.Equal(s.at(uint32(slot)-1), id) {
			return at
		}
	}
}

// Add adds an id, if it is a new one.
func (s *IDs) Add(id []byte) error {
	if 3*(s.Len()+1) > 2*len(s.slots) {
		if err := s.rehash(); err != nil {
			return err
		}
	}
	hash := s.hash(id)
	at := s.place(id, hash)
	if s.slots[at] != 0 {
		return nil
	}
	if s.Len() == graph.MaxVertices {
		return fmt.Errorf("there are more than %d vertices, which is the most a graph may have: cut it before it is imported", graph.MaxVertices)
	}
	var err error
	if s.bytes, err = source.Enlarge(s.memory, s.bytes, len(id), 1); err != nil {
		return err
	}
	if s.offsets, err = source.Enlarge(s.memory, s.offsets, 2, 8); err != nil {
		return err
	}
	if len(s.offsets) == 0 {
		s.offsets = append(s.offsets, 0)
	}
	s.bytes = append(s.bytes, id...)
	s.offsets = append(s.offsets, int64(len(s.bytes)))
	s.slots[at] = hash | uint64(s.Len())
	return nil
}

func (s *IDs) rehash() error {
	room := max(1024, 2*len(s.slots))
	if err := s.memory.Grow(uint64(len(s.slots))*8, uint64(room)*8); err != nil {
		return err
	}
	old, mask := s.slots, uint64(room-1)
	s.slots = make([]uint64, room)
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := slot >> 32 & mask
		for s.slots[at] != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = slot
	}
	return nil
}

// Strings returns the ids. The slices are the set's own.
func (s *IDs) Strings() *graph.Strings { return &graph.Strings{Offsets: s.offsets, Bytes: s.bytes} }

// Number returns the number of an id, or intids.Unknown.
func (s *IDs) Number(id []byte) uint32 {
	if len(s.slots) == 0 {
		return intids.Unknown
	}
	return uint32(s.slots[s.place(id, s.hash(id))]) - 1 // an empty slot gives Unknown
}
