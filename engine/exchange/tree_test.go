package exchange

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive adds up leaves as the tree is defined, nil where there are none.
func naive[T Number](rows [][]T, first, end int) []T {
	if end-first == 1 {
		return slices.Clone(rows[first])
	}
	half := (first + end) / 2
	left, right := naive(rows, first, half), naive(rows, half, end)
	if left == nil {
		return right
	}
	for i := range right {
		left[i] += right[i]
	}
	return left
}

// treeOf is the sum of all leaves.
func treeOf[T Number](rows [][]T) []T {
	for len(rows)&(len(rows)-1) != 0 {
		rows = append(slices.Clip(rows), nil)
	}
	return naive(rows, 0, len(rows))
}

// same says whether two rows have the same bits. All NaNs are the same here: which of
// two stays is the processor's business, and TestNaNsStay's.
func same[T Number](a, b []T) bool {
	return slices.EqualFunc(a, b, func(a, b T) bool {
		x, y := float64(a), float64(b)
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	})
}

// row is numbers whose sum depends on the order: of many sizes, with zeros of both
// signs, infinities and NaNs among them where these are wanted.
func row[T Number](r *rand.Rand, columns int, odd bool) []T {
	to := make([]T, columns)
	for i := range to {
		to[i] = T((r.Float64() - 0.5) * math.Exp2(float64(r.IntN(24))))
		if odd && r.IntN(4) == 0 {
			to[i] = [...]T{0, T(math.Copysign(0, -1)), T(math.Inf(1)), T(math.Inf(-1)), T(math.NaN())}[r.IntN(5)]
		}
		if i%5 == 4 {
			to[i] = T(math.Copysign(0, -1)) // stays so where all leaves are
		}
	}
	return to
}

// holdings are who holds which of some leaves: runs of them, with some strewn in, and
// leaves that nobody holds.
func holdings(r *rand.Rand, leaves, nodes int) []int {
	to := make([]int, leaves)
	strewn, empty := r.IntN(3), r.IntN(4)
	for i := range to {
		to[i] = i * nodes / leaves
		if r.IntN(4) < strewn {
			to[i] = r.IntN(nodes)
		}
		if r.IntN(4) < empty {
			to[i] = -1
		}
	}
	return to
}

func TestSpansAreTheLargestOfOneNode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var again [][]Span
	for range 2000 {
		leaves, nodes := 1+r.IntN(64), 1+r.IntN(5)
		holders := holdings(r, leaves, nodes)
		all := Spans(holders, nodes)
		if again = SpansTo(again, holders, nodes); !slices.EqualFunc(again, all, slices.Equal) {
			t.Fatalf("%v: %v in memory used again, %v in new", holders, again, all)
		}
		top := uint8(bits.Len(uint(leaves - 1)))
		// mine counts a node's leaves under a span, others those of other nodes.
		count := func(node int, s Span) (mine, others int) {
			for i := s.First; i < min(s.First+1<<s.Level, leaves); i++ {
				switch holders[i] {
				case node:
					mine++
				case -1:
				default:
					others++
				}
			}
			return mine, others
		}
		for node := range nodes {
			under, last := 0, -1
			for _, s := range all[node] {
				mine, others := count(node, s)
				if mine == 0 || others > 0 || s.Level > top || s.First%(1<<s.Level) != 0 || s.First <= last {
					t.Fatalf("%v: node %d has the span %v", holders, node, s)
				}
				if s.Level < top {
					above := Span{s.First &^ (1 << s.Level), s.Level + 1}
					if _, others := count(node, above); others == 0 {
						t.Fatalf("%v: node %d has the span %v and not %v", holders, node, s, above)
					}
				}
				under, last = under+mine, s.First+1<<s.Level-1
			}
			if all, _ := count(node, Span{0, top}); all != under {
				t.Fatalf("%v: spans %v have %d of node %d's %d leaves", holders, all, under, node, all)
			}
		}
	}
}

// sums are what a summer makes of the leaves of a node.
func sums[T Number](s *Summer[T], rows [][]T, holders []int, node int, spans []Span) [][]T {
	s.Begin(spans)
	for leaf, h := range holders {
		if h == node {
			copy(s.Row(leaf), rows[leaf])
		}
	}
	return s.Sums()
}

func TestASummerAddsUpAsTheTreeDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	const columns = 7
	s := NewSummer[float32](columns)
	for i := range 1000 {
		leaves := 1 + r.IntN(64)
		if i%100 == 0 {
			leaves = 1000
		}
		rows, holders := make([][]float32, leaves), holdings(r, leaves, 1)
		for leaf, h := range holders {
			if h == 0 {
				rows[leaf] = row[float32](r, columns, i%2 == 0)
			}
		}
		want := treeOf(rows)
		spans := Spans(holders, 1)
		got := sums(s, rows, holders, 0, spans[0])
		if want == nil {
			if len(got) > 0 {
				t.Fatalf("nothing was added up to %v", got)
			}
			continue
		}
		if len(got) != 1 || !same(got[0], want) {
			t.Fatalf("leaves %v: %v, want %v", holders, got, want)
		}
	}
	// Memory: one row for each level of a tree of 1024, one for the sum.
	if len(s.idle)+len(s.sums)+len(s.stack) > 12 {
		t.Errorf("a tree of ten levels took %d rows", len(s.idle)+len(s.sums)+len(s.stack))
	}
}

// The numbers of these tests have other sums in other orders: else they would show
// nothing.
func TestTheOrderMatters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	rows := make([][]float32, 16)
	for i := range rows {
		rows[i] = row[float32](r, 100, false)
	}
	line := slices.Clone(rows[0])
	for _, other := range rows[1:] {
		add(line, other)
	}
	if same(line, treeOf(rows)) {
		t.Error("one after the other is what the tree gives")
	}
}

func TestNaNsStay(t *testing.T) {
	first, second := math.Float32frombits(0x7fc00001), math.Float32frombits(0x7fc00002)
	s := NewSummer[float32](1)
	s.Begin([]Span{{0, 1}})
	s.Row(0)[0] = first
	s.Row(1)[0] = second
	summed := s.Sums()[0][0]
	pieces := []piece{{0, raw([]float32{first})}, {1, raw([]float32{second})}}
	fold[float32](pieces)
	if folded := numbers[float32](pieces[0].row)[0]; math.Float32bits(folded) != math.Float32bits(summed) {
		t.Errorf("%x in a summer, %x between nodes", math.Float32bits(summed), math.Float32bits(folded))
	}
}

func TestRowsOutOfPlaceAreFound(t *testing.T) {
	for name, do := range map[string]func(s *Summer[float32]){
		"of no span":        func(s *Summer[float32]) { s.Row(4) },
		"after all":         func(s *Summer[float32]) { s.Row(2); s.Row(8) },
		"twice":             func(s *Summer[float32]) { s.Row(2); s.Row(2) },
		"descending":        func(s *Summer[float32]) { s.Row(3); s.Row(2) },
		"missing at last":   func(s *Summer[float32]) { s.Row(2); s.Sums() },
		"missing at first":  func(s *Summer[float32]) { s.Row(6) },
		"of an early span":  func(s *Summer[float32]) { s.Row(2); s.Row(6); s.Row(2) },
		"none of the spans": func(s *Summer[float32]) { s.Sums() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			s := NewSummer[float32](1)
			s.Begin([]Span{{2, 1}, {6, 1}})
			do(s)
		})
	}
}
