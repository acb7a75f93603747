package exchange

import "fmt"

// A Summer adds up rows, leaf by leaf, as the tree does, whichever node holds them. A
// sum is that of its left half plus that of its right half; where one half has no rows
// it is the other. It keeps one row for each span and one for each level of the tree.
type Summer[T Number] struct {
	columns int
	spans   []Span
	stack   []partial[T] // of the current span, each the sum of all that came before the next
	sums    [][]T        // of earlier spans
	idle    [][]T
}

// A partial is the sum of some leaves' rows.
type partial[T Number] struct {
	leaf int // one of them
	row  []T
}

// NewSummer returns a Summer for rows of so many columns.
func NewSummer[T Number](columns int) *Summer[T] { return &Summer[T]{columns: columns} }

// Begin drops all rows, and sets the spans to sum: those of one node.
func (s *Summer[T]) Begin(spans []Span) {
	s.spans = append(s.spans[:0], spans...)
	for _, p := range s.stack {
		s.idle = append(s.idle, p.row)
	}
	s.idle = append(s.idle, s.sums...)
	s.stack, s.sums = s.stack[:0], s.sums[:0]
}

// Row returns where to put the row of the next leaf, with any content. Leaves ascend,
// and each is in one of the spans. It is valid until the next call.
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
		// Add up all partial sums that this leaf can't complete.
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

// close ends the current span.
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

// Sums returns the sums of the spans, in their order, once all rows are there. They are
// valid until the next Begin: nobody reads the rows given to Reduce after it has
// returned.
func (s *Summer[T]) Sums() [][]T {
	for len(s.sums) < len(s.spans) {
		s.close()
	}
	return s.sums
}

// A Range is elements of a row of weights or gradients.
type Range struct{ First, Count int }
