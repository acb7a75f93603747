package exchange

import "math/bits"

// A Span is a node of the binary tree over leaves: 1<<Level of them from First on,
// which is a multiple of that. The root spans the least power of two that holds all
// leaves.
type Span struct {
	First int
	Level uint8
}

// end returns the first leaf after the span.
func (s Span) end() int { return s.First + 1<<s.Level }

// halves returns the two halves of a span above a leaf.
func (s Span) halves() (left, right Span) {
	l := s.Level - 1
	return Span{s.First, l}, Span{s.First + 1<<l, l}
}

// Spans returns the spans that each node contributes to a sum in the order of the tree.
// They are the largest ones whose leaves belong to that node, at least one, or to none
// (-1: there is nothing to add). They ascend.
func Spans(holders []int, nodes int) [][]Span { return SpansTo(nil, holders, nodes) }

// SpansTo is Spans in memory that is reused.
func SpansTo(to [][]Span, holders []int, nodes int) [][]Span {
	for len(to) < nodes {
		to = append(to, nil)
	}
	to = to[:nodes]
	for i := range to {
		to[i] = to[i][:0]
	}
	if len(holders) > 0 {
		spans(to, holders, Span{0, uint8(bits.Len(uint(len(holders) - 1)))})
	}
	return to
}

func spans(to [][]Span, holders []int, s Span) {
	switch h := holder(holders, s); h {
	case nobody:
	case several:
		left, right := s.halves()
		spans(to, holders, left)
		spans(to, holders, right)
	default:
		to[h] = append(to[h], s)
	}
}

const (
	nobody  = -1
	several = -2
)

// holder returns the node that holds all leaves of a span.
func holder(holders []int, s Span) int {
	one := nobody
	for leaf := s.First; leaf < min(s.end(), len(holders)); leaf++ {
		switch h := holders[leaf]; {
		case h == nobody || h == one:
		case one == nobody:
			one = h
		default:
			return several
		}
	}
	return one
}

// meet returns the level of the smallest span that holds two leaves.
func meet(a, b int) int { return bits.Len(uint(a ^ b)) }

// A piece is a row by the first of the leaves whose sum it is.
type piece struct {
	first int
	row   []byte
}

// fold adds up pieces, which ascend, as the tree does. The sum is then the row of the
// first.
func fold[T Number](pieces []piece) {
	if len(pieces) < 2 {
		return
	}
	// Where the first and the last part, all others do.
	half := 1 << (meet(pieces[0].first, pieces[len(pieces)-1].first) - 1)
	right := 1
	for pieces[right].first&half == 0 {
		right++
	}
	fold[T](pieces[:right])
	fold[T](pieces[right:])
	add(numbers[T](pieces[0].row), numbers[T](pieces[right].row))
}
