package partners

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// rowsOf returns rows that lie in memory as in a file.
func rowsOf(x []float32, columns int) Rows {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	return Rows{File: bytes.NewReader(b), Count: len(x) / columns, Columns: columns}
}

// random returns rows of small whole numbers, so that many scores are equal, or of any numbers.
func random(r *rand.Rand, rows, columns int, whole bool) []float32 {
	x := make([]float32, rows*columns)
	for i := range x {
		if x[i] = float32(r.NormFloat64()); whole {
			x[i] = float32(r.IntN(5) - 2)
		}
	}
	return x
}

// dots scores by the inner product on the processor.
func dots(t testing.TB, threads int) link.Blocks {
	t.Helper()
	device := cpu.New(threads)
	t.Cleanup(device.Close)
	blocks, err := link.NewBlocks("dot", device)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// joined returns a graph whose rows are not in the order of its vertices, and whether two rows
// are neighbours.
func joined(r *rand.Rand, rows, edges int) (*Graph, func(a, b uint32) bool) {
	g := &Graph{Row: make([]uint32, rows), Vertex: make([]uint32, rows)}
	for row, v := range r.Perm(rows) {
		g.Row[v], g.Vertex[row] = uint32(row), uint32(v)
	}
	sources := make([][]int32, rows)
	has := map[[2]uint32]bool{}
	for range edges {
		from, to := uint32(r.IntN(rows)), uint32(r.IntN(rows))
		sources[to] = append(sources[to], int32(from))
		has[[2]uint32{g.Row[from], g.Row[to]}] = true
	}
	g.Sources = func(v uint32) []int32 { return sources[v] }
	return g, func(a, b uint32) bool { return has[[2]uint32{a, b}] || has[[2]uint32{b, a}] }
}

// brute scores all pairs by themselves, and sorts them.
func brute(t testing.TB, rows Rows, blocks link.Blocks, row uint32, most int, near func(a, b uint32) bool) (all []Partner) {
	t.Helper()
	s := NewScorer(rows, blocks)
	var score [1]float32
	for target := range uint32(rows.Count) {
		if target == row || near != nil && near(row, target) {
			continue
		}
		if err := s.Score(score[:], []uint32{row}, []uint32{target}); err != nil {
			t.Fatal(err)
		}
		if score[0] > excluded {
			all = append(all, Partner{target, score[0]})
		}
	}
	slices.SortFunc(all, func(a, b Partner) int {
		switch {
		case a.Score != b.Score && a.Score > b.Score, a.Score == b.Score && a.Row < b.Row:
			return -1
		}
		return 1
	})
	return all[:min(most, len(all))]
}

// What a search finds is what comparing all pairs finds, to the last bit, whatever its blocks,
// its threads and the order in which it is asked.
func TestSearchIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, c := range []struct {
		rows, columns, most, edges int
		whole                      bool
	}{
		{1, 3, 4, 0, false}, {2, 3, 4, 3, false}, {700, 32, 10, 4000, false}, {700, 3, 25, 9000, true}, {333, 5, 400, 2000, true}, {1500, 17, 1, 3000, false},
	} {
		rows := rowsOf(random(r, c.rows, c.columns, c.whole), c.columns)
		g, near := joined(r, c.rows, c.edges)
		var some []uint32 // in any order, and some of them twice
		for range min(60, 2*c.rows) {
			some = append(some, uint32(r.IntN(c.rows)))
		}
		for _, without := range []bool{true, false} {
			for _, memory := range []uint64{0, 1, 300_000} {
				for threads := 1; threads <= 2; threads++ {
					o := Options{Rows: rows, Blocks: dots(t, threads), Most: c.most, Memory: memory, Threads: threads}
					near := near
					if o.Graph = g; !without {
						o.Graph, near = nil, nil
					}
					s := NewSearch(o)
					for part := range slices.Chunk(some, s.AtOnce()) {
						if err := s.Find(t.Context(), part); err != nil {
							t.Fatal(err)
						}
						for i, row := range part {
							want := brute(t, rows, o.Blocks, row, c.most, near)
							if got := s.Best(i); !slices.Equal(got, want) {
								t.Fatalf("%+v, memory %d, %d threads: row %d has %v, want %v", c, memory, threads, row, got, want)
							}
						}
					}
					s.Close()
				}
			}
		}
	}
}

// Many given pairs are scored as each is by itself.
func TestScoresOfPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	x := random(r, 90, 33, false)
	rows := rowsOf(x, 33)
	var a, b []uint32
	for range 101 {
		a, b = append(a, uint32(r.IntN(90))), append(b, uint32(r.IntN(90)))
	}
	blocks := dots(t, 2)
	got, one := make([]float32, len(a)), make([]float32, 1)
	if err := NewScorer(rows, blocks).Score(got, a, b); err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if err := NewScorer(rows, blocks).Score(one, b[i:][:1], a[i:][:1]); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for c := range 33 {
			sum += float64(x[int(a[i])*33+c]) * float64(x[int(b[i])*33+c])
		}
		if got[i] != one[0] || math.Abs(sum-float64(got[i])) > 1e-4 {
			t.Errorf("pair %d has the score %g, by itself %g, and %g in float64", i, got[i], one[0], sum)
		}
	}
}

// What is no number is the score of no partner, and does no harm to others.
func TestScoresThatAreNoNumbers(t *testing.T) {
	nan := float32(math.NaN())
	s := NewSearch(Options{Rows: rowsOf([]float32{1, nan, 3, 2}, 1), Blocks: dots(t, 1), Most: 3})
	defer s.Close()
	if err := s.Find(t.Context(), []uint32{0, 1}); err != nil {
		t.Fatal(err)
	}
	if got := s.Best(0); !slices.Equal(got, []Partner{{2, 3}, {3, 2}}) || len(s.Best(1)) > 0 {
		t.Errorf("%v and %v", got, s.Best(1))
	}
}

// Blocks take what was said, and a search allocates nothing.
func TestSearchKeepsToItsMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	rows := rowsOf(random(r, 5000, 16, false), 16)
	g, _ := joined(r, 5000, 20_000)
	for _, memory := range []uint64{0, 1, 200_000, 1 << 20, 8 << 20, 1 << 30} {
		o := Options{Rows: rows, Blocks: dots(t, 2), Most: 10, Graph: g, Memory: memory, Threads: 2}
		s := NewSearch(o)
		takes := 4*uint64(cap(s.a)+cap(s.b)+cap(s.scores)+cap(s.sorted)+cap(s.places)) + 8*uint64(cap(s.heaps)+cap(s.counts))
		if memory > 0 && takes > max(memory, o.Least()) {
			t.Errorf("of %d bytes, at least %d, it takes %d", memory, o.Least(), takes)
		}
		asked := []uint32{7, 4999, 12}
		if n := testing.AllocsPerRun(2, func() {
			if err := s.Find(t.Context(), asked); err != nil {
				t.Error(err)
			}
		}); n > 0 {
			t.Errorf("a search of %d bytes allocates %g times", memory, n)
		}
		s.Close()
	}
}

// A search ends when it is to end, and where rows can't be read.
func TestSearchesEnd(t *testing.T) {
	s := NewSearch(Options{Rows: rowsOf(make([]float32, 8), 2), Blocks: dots(t, 1), Most: 1})
	defer s.Close()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := s.Find(ctx, []uint32{1}); !errors.Is(err, why) {
		t.Error(err)
	}
	s.Rows.File = bytes.NewReader(nil)
	if err := s.Find(t.Context(), []uint32{1}); err == nil {
		t.Error("rows came from an empty file")
	}
	if _, err := link.NewBlocks("rotate", nil); err == nil {
		t.Error("there is a decoder rotate")
	}
}

// BenchmarkSearch finds 10 partners of 4096 rows among 100,000, beside the products alone.
func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const columns = 32
	x := random(r, 100_000, columns, false)
	rows, blocks := rowsOf(x, columns), dots(b, 1)
	b.Run("search", func(b *testing.B) {
		s := NewSearch(Options{Rows: rows, Blocks: blocks, Most: 10, Threads: 1})
		defer s.Close()
		var asked []uint32
		for row := range uint32(s.AtOnce()) {
			asked = append(asked, row)
		}
		for b.Loop() {
			if err := s.Find(b.Context(), asked); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("products", func(b *testing.B) {
		scores := tensor.OverF32(mostSources, mostTargets, make([]float32, mostSources*mostTargets))
		for b.Loop() {
			for first := 0; first+mostTargets <= rows.Count; first += mostTargets {
				blocks.Score(scores, tensor.OverF32(mostSources, columns, x[:mostSources*columns]), tensor.OverF32(mostTargets, columns, x[first*columns:][:mostTargets*columns]))
			}
		}
	})
}
