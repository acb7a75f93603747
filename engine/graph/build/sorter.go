package build

import (
	"context"
	"fmt"
)

// digit is the maximum number of bits per pass of the sort: its counters fit the L1
// cache.
const digit = 11

// A sorter reads one bucket of records into memory and sorts it. A record is a row in the
// high bits and a value in the low ones; weights, if any, are moved along. The sort is
// stable.
type sorter struct {
	limit   int  // records held at once
	most    int  // the same, if all are of one row
	low     uint // bits of the value
	keys    []uint64
	spare   []uint64
	weights []float32 // nil without weights
	other   []float32
	chunk   []uint64
	light   []float32
}

func newSorter(limit, most int, low uint, weighted bool) *sorter {
	s := &sorter{limit: limit, most: most, low: low, chunk: make([]uint64, 1<<13)}
	if weighted {
		s.light = make([]float32, 1<<13)
	}
	s.grow(limit)
	return s
}

// grow makes room for n records.
func (s *sorter) grow(n int) {
	s.keys, s.spare = nil, nil // released before more is allocated
	s.keys, s.spare = make([]uint64, n), make([]uint64, n)
	if s.light != nil {
		s.weights, s.other = nil, nil
		s.weights, s.other = make([]float32, n), make([]float32, n)
	}
}

// A sorted holds the records of rows first to end (exclusive). Its slices belong to the
// sorter; spare has the same capacity and may be used as scratch.
type sorted struct {
	first, end uint32
	keys       []uint64
	weights    []float32
	spare      []uint64
}

// rows yields the records of rows first to end (exclusive) of a bucket, in order and in
// as few pieces as memory allows. Every row is in exactly one piece.
func (s *sorter) rows(ctx context.Context, from *records, bucket int, first, end uint32, yield func(sorted) error) error {
	n := from.size(bucket)
	if n <= s.limit {
		return s.piece(ctx, from, bucket, first, end, end-first, yield)
	}
	counts := make([]uint32, end-first)
	err := from.scan(ctx, bucket, s.chunk, nil, func(keys []uint64, _ []float32) error {
		for _, k := range keys {
			counts[uint32(k>>s.low)-first]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for at := first; at < end; {
		held, to := 0, at
		for to < end && held+int(counts[to-first]) <= s.limit {
			held += int(counts[to-first])
			to++
		}
		if to == at {
			n := int(counts[at-first])
			if n > s.most {
				return fmt.Errorf("a single vertex has %d edges, and the memory holds %d at once: raise {dataset.memory}", n, s.most)
			}
			if n > len(s.keys) {
				s.grow(n)
			}
			to++
		}
		if err := s.piece(ctx, from, bucket, at, to, end-first, yield); err != nil {
			return err
		}
		at = to
	}
	return nil
}

// piece reads the records of some of the bucket's rows and sorts them.
func (s *sorter) piece(ctx context.Context, from *records, bucket int, first, end, all uint32, yield func(sorted) error) error {
	held := 0
	err := from.scan(ctx, bucket, s.chunk, s.light, func(keys []uint64, weights []float32) error {
		if end-first == all {
			copy(s.keys[held:], keys)
			copy(s.weights[min(held, len(s.weights)):], weights)
			held += len(keys)
			return nil
		}
		for i, k := range keys {
			if uint32(k>>s.low)-first < end-first {
				s.keys[held] = k
				if weights != nil {
					s.weights[held] = weights[i]
				}
				held++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.sort(held)
	p := sorted{first: first, end: end, keys: s.keys[:held], spare: s.spare[:held]}
	if s.weights != nil {
		p.weights = s.weights[:held]
	}
	return yield(p)
}

// sort orders the first n records, digit by digit from the lowest.
func (s *sorter) sort(n int) {
	var seen uint64
	for _, k := range s.keys[:n] {
		seen |= k
	}
	width := uint(0)
	for seen>>width != 0 {
		width++
	}
	passes := (width + digit - 1) / digit
	if passes == 0 {
		return
	}
	step := (width + passes - 1) / passes
	mask := uint64(1)<<step - 1
	var counts [1 << digit]int
	for shift := uint(0); shift < width; shift += step {
		clear(counts[:])
		keys, to := s.keys[:n], s.spare[:n]
		for _, k := range keys {
			counts[k>>shift&mask]++
		}
		at := 0
		for d, c := range counts {
			counts[d] = at
			at += c
		}
		if s.weights == nil {
			for _, k := range keys {
				d := k >> shift & mask
				to[counts[d]] = k
				counts[d]++
			}
		} else {
			for i, k := range keys {
				d := k >> shift & mask
				to[counts[d]] = k
				s.other[counts[d]] = s.weights[i]
				counts[d]++
			}
			s.weights, s.other = s.other, s.weights
		}
		s.keys, s.spare = s.spare, s.keys
	}
}
