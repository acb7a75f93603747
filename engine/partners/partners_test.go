package partners

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

// on returns so many threads of the processor.
func on(threads int) link.Threads {
	return link.Threads{Count: threads, Open: func(n int) tensor.Device { return cpu.New(n) }}
}

// scoring returns what scores embeddings of a width on the processor, by weights that the decoder
// and the width decide.
func scoring(t testing.TB, decoder string, width, threads int, whole bool) link.Blocks {
	t.Helper()
	blocks, err := link.NewBlocks(decoder, width, 0, weightsOf(t, decoder, width, whole), on(threads))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(blocks.Close)
	return blocks
}

func weightsOf(t testing.TB, decoder string, width int, whole bool) []float32 {
	t.Helper()
	n, err := link.Size(decoder, width, 0)
	if err != nil {
		t.Fatal(err)
	}
	return random(rand.New(rand.NewPCG(uint64(width), 9)), 1, n, whole)
}

// dots scores by the inner product.
func dots(t testing.TB, threads int) link.Blocks { return scoring(t, "dot", 1, threads, false) }

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
	s := NewScorer(rows, blocks, 0)
	var score [1]float32
	for target := range uint32(rows.Count) {
		if target == row || near != nil && near(row, target) {
			continue
		}
		if err := s.Score(t.Context(), score[:], []uint32{row}, []uint32{target}); err != nil {
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
		decoder                    string
		rows, columns, most, edges int
		whole                      bool
	}{
		{"dot", 1, 3, 4, 0, false}, {"dot", 2, 3, 4, 3, false}, {"dot", 700, 32, 10, 4000, false}, {"dot", 700, 3, 25, 9000, true}, {"dot", 333, 5, 400, 2000, true}, {"dot", 1500, 17, 1, 3000, false},
		{"distmult", 2, 3, 4, 3, false}, {"distmult", 700, 32, 10, 4000, false}, {"distmult", 333, 5, 400, 2000, true},
		{"mlp", 1, 3, 4, 0, false}, {"mlp", 290, 33, 10, 2000, false}, {"mlp", 333, 5, 400, 2000, true}, {"mlp", 20, 256, 3, 30, false},
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
					o := Options{Rows: rows, Blocks: scoring(t, c.decoder, c.columns, threads, c.whole), Most: c.most, Memory: memory, Threads: threads}
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

// Many given pairs are scored as each is by itself on one thread, and as the decoder of training
// scores them.
func TestScoresOfPairs(t *testing.T) {
	for _, decoder := range link.Decoders {
		for _, columns := range []int{33, 256} { // 256: products are shared by all threads
			r := rand.New(rand.NewPCG(4, 6))
			x := random(r, 90, columns, false)
			rows := rowsOf(x, columns)
			var a, b []uint32
			for range 101 {
				a, b = append(a, uint32(r.IntN(90))), append(b, uint32(r.IntN(90)))
			}
			blocks := scoring(t, decoder, columns, 2, false)
			got, one := make([]float32, len(a)), make([]float32, 1)
			if err := NewScorer(rows, blocks, 0).Score(t.Context(), got, a, b); err != nil {
				t.Fatal(err)
			}
			wide := func(x []float32) (y []float64) {
				for _, v := range x {
					y = append(y, float64(v))
				}
				return y
			}
			exact, weights := link.NewDecoder(decoder, columns), wide(weightsOf(t, decoder, columns, false))
			for i := range a {
				if err := NewScorer(rows, scoring(t, decoder, columns, 1, false), 0).Score(t.Context(), one, a[i:][:1], b[i:][:1]); err != nil {
					t.Fatal(err)
				}
				want := exact.Score(weights, wide(x[int(a[i])*columns:][:columns]), wide(x[int(b[i])*columns:][:columns]), 0)
				if got[i] != one[0] || math.Abs(want-float64(got[i])) > 1e-5*float64(columns)*max(1, math.Abs(want)/10) {
					t.Errorf("%s, %d columns: pair %d has the score %g, by itself %g, and %g in float64", decoder, columns, i, got[i], one[0], want)
				}
			}
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
	for i, memory := range []uint64{0, 1, 200_000, 1 << 20, 8 << 20, 1 << 30} {
		decoder := link.Decoders[i%len(link.Decoders)]
		o := Options{Rows: rows, Blocks: scoring(t, decoder, 16, 2, false), Most: 10, Graph: g, Memory: memory, Threads: 2}
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
			t.Errorf("a search by %s of %d bytes allocates %g times", decoder, memory, n)
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
	if _, err := link.NewBlocks("rotate", 4, 0, nil, on(1)); err == nil {
		t.Error("there is a decoder rotate")
	}
	if _, err := link.NewBlocks("distmult", 4, 0, make([]float32, 3), on(1)); err == nil || !strings.Contains(err.Error(), "has 4 weights, and the model brings 3") {
		t.Error(err)
	}
}

// A block that is under way when the search is to end is left, and the search says so.
func TestBlocksAreLeft(t *testing.T) {
	for _, decoder := range link.Decoders {
		s := NewScorer(rowsOf(make([]float32, 8), 2), scoring(t, decoder, 2, 1, false), 0)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if err := s.Score(ctx, make([]float32, 1), []uint32{1}, []uint32{2}); !errors.Is(err, why) {
			t.Errorf("%s: %v", decoder, err)
		}
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
				blocks.Score(b.Context(), scores, tensor.OverF32(mostSources, columns, x[:mostSources*columns]), tensor.OverF32(mostTargets, columns, x[first*columns:][:mostTargets*columns]))
			}
		}
	})
}
