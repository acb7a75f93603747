package exchange

import "fmt"

// A Summer adds up rows, leaf by leaf, as the tree does, whoever holds which: a sum is
// that of its left half plus that of its right half, and where one half has no rows
// it is the other. It keeps one row for each span and one for each level of the tree.
type Summer[T Number] struct {
	columns int
	spans   []Span
	stack   []partial[T] // of the span in hand, each the sum of all that came before the next
	sums    [][]T        // of the spans before it
	idle    [][]T
}

// A partial is the sum of some leaves' rows.
type partial[T Number] struct {
	leaf int // one of them
	row  []T
}

// NewSummer makes one for rows of so many columns.
func NewSummer[T Number](columns int) *Summer[T] { return &Summer[T]{columns: columns} }

// Begin forgets all rows, and says which spans are wanted: those of one node.
func (s *Summer[T]) Begin(spans []Span) {
	s.spans = append(s.spans[:0], spans...)
	for _, p := range s.stack {
		s.idle = append(s.idle, p.row)
	}
	s.idle = append(s.idle, s.sums...)
	s.stack, s.sums = s.stack[:0], s.sums[:0]
}

// Row is where the row of the next leaf is to be put, which holds anything. Leaves
// ascend, and each is in one of the spans. It holds until the next call.
func (s *Summer[T]) Row(leaf int) []T {
	for len(s.sums) < len(s.spans) && leaf >= s.spans[len(s.sums)].end() {
		s.close()
	}
	if len(s.sums) == len(s.spans) || leaf < s.spans[len(s.sums)].First {
		panic(fmt.Sprintf("exchange: leaf %d is in none of the spans %v", leaf, s.spans))
	}
	if n := len(s.stack); n > 0 {
		if leaf <= s.stack[n-1].leaf {
			panic(fmt.Sprintf("exchange: leaf %d comes after leaf %d", leaf, s.stack[n-1].leaf))
		}
		// All that this leaf can't be a half of is added up.
		for n = len(s.stack); n > 1 && meet(s.stack[n-2].leaf, s.stack[n-1].leaf) < meet(s.stack[n-1].leaf, leaf); n-- {
			s.join()
		}
	}
	var row []T
	if n := len(s.idle); n > 0 {
		row, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		row = make([]T, s.columns)
	}
	s.stack = append(s.stack, partial[T]{leaf, row})
	return row
}

// join adds the last partial sum to the one before.
func (s *Summer[T]) join() {
	n := len(s.stack)
	left, right := s.stack[n-2], s.stack[n-1]
	add(left.row, right.row)
	s.idle = append(s.idle, right.row)
	s.stack = s.stack[:n-1]
	s.stack[n-2].leaf = right.leaf
}

// close ends the span in hand.
func (s *Summer[T]) close() {
	if len(s.stack) == 0 {
		panic(fmt.Sprintf("exchange: there is no row of the span %v", s.spans[len(s.sums)]))
	}
	for len(s.stack) > 1 {
		s.join()
	}
	s.sums = append(s.sums, s.stack[0].row)
	s.stack = s.stack[:0]
}

// Sums are those of the spans, in their order, once all rows are there. They hold
// until the next Begin: what Reduce was given nobody reads when it has returned.
func (s *Summer[T]) Sums() [][]T {
	for len(s.sums) < len(s.spans) {
		s.close()
	}
	return s.sums
}
