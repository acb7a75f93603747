package graph

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// Seeds are what other nodes must know of a shard's labels and marks, which stay with it.
type Seeds struct {
	// Splits counts the labelled vertices of each split.
	Splits []SplitInfo
	// Training are the labelled training vertices of one split.
	Training RowSet
}

// A RowSet is some of a shard's rows: a bit for each row of the shard or, where that is
// shorter, the gaps between those of the set, as varints.
type RowSet struct {
	bits []int64
	gaps []byte // nil: there are bits
}

// newRowSet returns the rows, of so many, for which has is true.
func newRowSet(rows int, has func(row int) bool) (s RowSet) {
	s.gaps = []byte{}
	words, next := (rows+63)/64, 0
	for row := range rows {
		if !has(row) {
			continue
		}
		if s.gaps = binary.AppendUvarint(s.gaps, uint64(row-next)); len(s.gaps) > 8*words {
			return newRowBits(rows, has)
		}
		next = row + 1
	}
	return s
}

func newRowBits(rows int, has func(row int) bool) RowSet {
	s := RowSet{bits: make([]int64, (rows+63)/64)}
	for row := range rows {
		if has(row) {
			s.bits[row/64] |= 1 << (row % 64)
		}
	}
	return s
}

// All yields the rows, ascending.
func (s *RowSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, word := range s.bits {
			for word := uint64(word); word != 0; word &= word - 1 {
				if !yield(64*at + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
		next := 0
		for b := s.gaps; len(b) > 0; {
			gap, n := binary.Uvarint(b)
			if row := next + int(gap); !yield(row) {
				return
			}
			next, b = next+int(gap)+1, b[n:]
		}
	}
}

// Count returns how many rows there are.
func (s *RowSet) Count() (n uint64) {
	for range s.All() {
		n++
	}
	return n
}

// Bytes returns the memory that it takes.
func (s *RowSet) Bytes() uint64 { return 8*uint64(len(s.bits)) + uint64(len(s.gaps)) }

// Clone returns a copy, which shares nothing with the message that the set came in.
func (s *RowSet) Clone() RowSet {
	c := RowSet{bits: slices.Clone(s.bits)}
	if s.gaps != nil {
		c.gaps = append([]byte{}, s.gaps...) // slices.Clone of none would share the message
	}
	return c
}

// add adds the set to the tensors of a skeleton. Those of 8 bytes come first.
func (s *RowSet) add(add func(name string, dtype safetensors.DType, data []byte, shape ...int64)) {
	if s.gaps == nil {
		add("training", safetensors.I64, raw(s.bits), int64(len(s.bits)))
	}
}

func (s *RowSet) addGaps(add func(name string, dtype safetensors.DType, data []byte, shape ...int64)) {
	if s.gaps != nil {
		add("gaps", safetensors.U8, s.gaps, int64(len(s.gaps)))
	}
}

// load reads what add has added for a shard.
func (s *RowSet) load(of *Shard) (err error) {
	if !of.file.Has("gaps") {
		if s.bits, err = view[int64](of, "training", (of.Vertices+63)/64); err != nil {
			return err
		}
		if rest := of.Vertices % 64; rest != 0 && uint64(s.bits[len(s.bits)-1])>>rest != 0 {
			return fmt.Errorf("tensor %q has bits beyond the last vertex", "training")
		}
		return nil
	}
	if s.gaps, err = view[uint8](of, "gaps", -1); err != nil {
		return err
	}
	if s.gaps == nil {
		s.gaps = []byte{}
	}
	left := uint64(of.Vertices)
	for b := s.gaps; len(b) > 0; {
		gap, n := binary.Uvarint(b)
		if n <= 0 || gap >= left {
			return fmt.Errorf("tensor %q has a row beyond the last vertex", "gaps")
		}
		left, b = left-gap-1, b[n:]
	}
	return nil
}

// SeedsOf returns the seeds of a whole shard, with the training vertices of a split.
func SeedsOf(s *Shard, split int) *Seeds {
	seeds := &Seeds{Splits: make([]SplitInfo, len(s.Marks)), Training: RowSet{gaps: []byte{}}}
	// Who has no label can be neither learnt from nor scored.
	labelled := func(row int) bool { return s.Labels != nil && s.Labels[row] >= 0 }
	for i, marks := range s.Marks {
		for row, mark := range marks {
			if !labelled(row) {
				continue
			}
			switch of := &seeds.Splits[i]; mark {
			case Train:
				of.Train++
			case Validation:
				of.Val++
			case Test:
				of.Test++
			}
		}
	}
	if split >= 0 && split < len(s.Marks) {
		marks := s.Marks[split]
		seeds.Training = newRowSet(s.Vertices, func(row int) bool { return marks[row] == Train && labelled(row) })
	}
	return seeds
}
