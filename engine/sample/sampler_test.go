package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// forms are all that a model may want.
func forms() []Form {
	var all []Form
	for _, w := range []Weighting{Ones, Sums, Symmetric} {
		all = append(all, Form{SelfLoops: false, Weighting: w}, Form{SelfLoops: true, Weighting: w})
	}
	return all
}

// drawnForms are also those that are only drawn.
func drawnForms() []Form {
	return append(forms(), Form{Weighting: Own}, Form{SelfLoops: true, Weighting: Own})
}

func distinct(r *rand.Rand, n, count int) []uint32 {
	var roots []uint32
	for _, v := range r.Perm(n)[:count] {
		roots = append(roots, uint32(v))
	}
	return roots
}

func TestSampleIsAsWrittenDown(t *testing.T) {
	const n = 700
	edges := wild(n, 6000, 1)
	r := rand.New(rand.NewPCG(2, 2))
	for _, weighted := range []bool{false, true} {
		for _, ends := range [][]int{{n}, {1, 1, 2, 90, 90, 91, 400, n, n}} {
			to := topology(t, cut(edges, weighted, ends...))
			for _, form := range drawnForms() {
				for _, fanouts := range [][]int{{}, {3}, {0}, {4, 2}, {5, 0, 3}, {100, 1}, {65, 64}} {
					for _, dense := range []bool{true, false} {
						o := Options{Fanouts: fanouts, Form: form, Seed: 7}
						a, s := newNaive(n, edges, weighted, o), newSampler(to, o, dense)
						var b Batch
						for step, count := range []int{1, 0, 130, 64, 65, 3} {
							roots := distinct(r, n, count)
							if err := s.Sample(t.Context(), &b, 5, uint64(step), roots); err != nil {
								t.Fatal(err)
							}
							layers := a.sample(5, uint64(step), roots)
							if len(b.Blocks) != len(layers) {
								t.Fatalf("%d blocks for the fan-outs %v", len(b.Blocks), fanouts)
							}
							for i := range layers {
								if err := layers[i].same(&b.Blocks[i], form.Weighting != Ones); err != nil {
									t.Fatalf("weighted %v, %v, fan-outs %v, dense %v, %d roots, block %d: %v", weighted, form, fanouts, dense, count, i, err)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestSampleNeverChanges holds blocks that were drawn once.
func TestSampleNeverChanges(t *testing.T) {
	var edges []edge
	for from := range uint32(12) {
		edges = append(edges, edge{from, 0, 1}, edge{from, (from*5 + 1) % 12, 1}, edge{from, (from*7 + 2) % 12, 1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return int(a.to*16+a.from) - int(b.to*16+b.from) })
	edges = slices.Compact(edges)
	to := topology(t, cut(edges, false, 5, 12))
	s := New(to, Options{Fanouts: []int{4, 2}, Form: Form{SelfLoops: true, Weighting: Sums}, Seed: 1})
	var b Batch
	if err := s.Sample(t.Context(), &b, 2, 3, []uint32{0, 7}); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, block := range b.Blocks {
		got += fmt.Sprintln(block.Vertices, block.Indptr, block.Indices, block.Values)
	}
	const want = `[0 7 2 10 3 6 11 5 8 9 1 4] [0 2 5 8 11 14 17 20] [3 6 1 5 6 2 0 7 3 8 9 4 1 3 5 10 11 6 2 4] [6 6 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1]
[0 7 2 10 3 6 11] [0 4 7] [1 2 3 4 1 5 6] [3 3 3 3 1 1 1]
`
	if got != want {
		t.Errorf("drawn were\n%s and not\n%s", got, want)
	}
}

// rows is what was drawn for each vertex at each hop of a batch.
func rows(b *Batch) map[[2]int][]entry {
	all := map[[2]int][]entry{}
	for i := range b.Blocks {
		block := &b.Blocks[i]
		for r := range block.Rows {
			row := []entry{}
			for e := block.Indptr[r]; e < block.Indptr[r+1]; e++ {
				row = append(row, entry{block.Vertices[block.Indices[e]], float64(block.Values[e])})
			}
			all[[2]int{len(b.Blocks) - 1 - i, int(block.Vertices[r])}] = row
		}
	}
	return all
}

func TestGroupingOfRootsChangesNothing(t *testing.T) {
	const n = 3000
	to := topology(t, cut(wild(n, 40000, 3), true, 1000, n))
	o := Options{Fanouts: []int{6, 4, 3}, Form: Form{SelfLoops: true, Weighting: Symmetric}, Seed: 9}
	roots := distinct(rand.New(rand.NewPCG(4, 4)), n, 512)
	var b Batch
	s := New(to, o)
	if err := s.Sample(t.Context(), &b, 1, 2, roots); err != nil {
		t.Fatal(err)
	}
	whole := rows(&b)
	for _, size := range []int{1, 3, 64, 100} {
		union := map[uint32]bool{}
		for group := range slices.Chunk(roots, size) {
			group = slices.Clone(group)
			slices.Reverse(group)
			if err := s.Sample(t.Context(), &b, 1, 2, group); err != nil {
				t.Fatal(err)
			}
			for at, row := range rows(&b) {
				if !slices.Equal(row, whole[at]) {
					t.Fatalf("for vertex %d at hop %d, %v is drawn in groups of %d, and %v in one", at[1], at[0], row, size, whole[at])
				}
			}
			for _, v := range b.Blocks[0].Vertices {
				union[v] = true
			}
		}
		if err := s.Sample(t.Context(), &b, 1, 2, roots); err != nil || len(union) != len(b.Blocks[0].Vertices) {
			t.Fatalf("%d vertices in groups of %d, %d in one (%v)", len(union), size, len(b.Blocks[0].Vertices), err)
		}
	}
}

// TestThreadsChangeNothing has several samplers share the steps of an epoch.
func TestThreadsChangeNothing(t *testing.T) {
	const n, steps, size = 4000, 40, 100
	shards := cut(wild(n, 60000, 5), true, 1500, n)
	o := Options{Fanouts: []int{8, 4}, Form: Form{SelfLoops: true, Weighting: Symmetric}, Seed: 3}
	order := make([]uint32, n)
	for v := range order {
		order[v] = uint32(v)
	}
	Order(1, 1, order)
	sampled := func(threads int) []string {
		to := topology(t, shards) // so that what is made once is made by all
		out := make([]string, steps)
		var all sync.WaitGroup
		for w := range threads {
			all.Go(func() {
				s := New(to, o)
				var b Batch
				for step := w; step < steps; step += threads {
					if err := s.Sample(t.Context(), &b, 0, uint64(step), order[step*size:][:size]); err != nil {
						t.Error(err)
					}
					for i := range b.Blocks {
						x := &b.Blocks[i]
						x.Transpose()
						out[step] += fmt.Sprint(x.Vertices, x.Indptr, x.Indices, x.Values, *x.Transposed)
					}
				}
			})
		}
		all.Wait()
		return out
	}
	one := sampled(1)
	for _, threads := range []int{2, 8} {
		if !slices.Equal(sampled(threads), one) {
			t.Errorf("%d threads draw something else than one", threads)
		}
	}
}

func TestRootsAreChecked(t *testing.T) {
	to := topology(t, cut(wild(100, 500, 1), false, 100))
	for _, dense := range []bool{true, false} {
		s := newSampler(to, Options{Fanouts: []int{2}}, dense)
		var b Batch
		for want, roots := range map[string][]uint32{
			"root 7 occurs twice":                           {1, 7, 3, 7},
			"root 100 is not a vertex of a graph of 100":    {1, 100},
			"root 4294967295 is not a vertex of a graph of": {1<<32 - 1},
		} {
			if err := s.Sample(t.Context(), &b, 0, 0, roots); err == nil || !strings.Contains(err.Error(), want) || len(b.Blocks) != 0 {
				t.Errorf("%v, with %d blocks, and %q was expected", err, len(b.Blocks), want)
			}
		}
		if err := s.Sample(t.Context(), &b, 0, 0, []uint32{1, 7, 3}); err != nil || len(b.Blocks) != 1 {
			t.Error(err)
		}
	}
}

func TestAGraphWithoutVertices(t *testing.T) {
	to := topology(t, cut(nil, false, 0))
	for _, form := range forms() {
		s := New(to, Options{Fanouts: []int{2, 0}, Form: form})
		var b Batch
		if err := s.Sample(t.Context(), &b, 0, 0, nil); err != nil || b.Blocks[0].Entries() != 0 || b.Blocks[0].Cols != 0 {
			t.Error(err)
		}
		if err := s.Part(&b.Blocks[0], 0, 0); err != nil || b.Blocks[0].Entries() != 0 {
			t.Error(err)
		}
		b.Blocks[0].Transpose()
	}
}

// TestStampsBeginAnew has the stamp of batches, and the base of their numbers, pass their
// last values.
func TestStampsBeginAnew(t *testing.T) {
	const n = 300
	edges := wild(n, 3000, 1)
	o := Options{Fanouts: []int{3, 3}}
	for _, dense := range []bool{true, false} {
		s, a := newSampler(topology(t, cut(edges, false, n)), o, dense), newNaive(n, edges, false, o)
		var b Batch
		for step := range uint64(6) {
			if step == 1 {
				s.seen.stamp, s.seen.base = 1<<32-2, math.MaxUint32-leastSlots-20
			}
			if err := s.Sample(t.Context(), &b, 0, step, []uint32{5, 9, 0}); err != nil {
				t.Fatal(err)
			}
			for i, l := range a.sample(0, step, []uint32{5, 9, 0}) {
				if err := l.same(&b.Blocks[i], false); err != nil {
					t.Fatalf("dense %v, step %d: %v", dense, step, err)
				}
			}
		}
		if dense && s.seen.stamp != 4 || !dense && s.seen.base > 200 {
			t.Errorf("the stamp is %d, the base %d", s.seen.stamp, s.seen.base)
		}
	}
}

// TestTablesAreOfTheBatch draws batches of all sizes from graphs of several.
func TestTablesAreOfTheBatch(t *testing.T) {
	for _, n := range []int{100, 20_000, 100_000} {
		s := New(topology(t, cut(nil, false, n)), Options{Fanouts: []int{1}})
		var b Batch
		for count := 1; count <= n; count *= 3 {
			if err := s.Sample(t.Context(), &b, 0, 0, distinct(rand.New(rand.NewPCG(4, 4)), n, count)); err != nil {
				t.Fatal(err)
			}
			dense := s.seen.dense != nil
			if slots := len(s.seen.sparse) + len(s.seen.dense); slots > densePer*max(leastSlots, 2*slotsPer*count) || !dense && slots < slotsPer*count {
				t.Errorf("%d vertices of %d have %d slots, dense: %v", count, n, slots, dense)
			}
		}
		if s.seen.dense == nil {
			t.Errorf("all of %d vertices have %d slots and not one each", n, len(s.seen.sparse))
		}
	}
}

func TestSamplingAllocatesNothing(t *testing.T) {
	const n = 3000
	to := topology(t, cut(wild(n, 40000, 3), true, 1000, n))
	roots := distinct(rand.New(rand.NewPCG(4, 4)), n, 300)
	for _, dense := range []bool{true, false} {
		s := newSampler(to, Options{Fanouts: []int{70, 4, 0}, Form: Form{SelfLoops: true, Weighting: Symmetric}}, dense)
		var b Batch
		var part Block
		step := uint64(0)
		run := func() {
			step = (step + 1) % 8
			if err := s.Sample(t.Context(), &b, 0, step, roots); err != nil {
				t.Error(err)
			}
			for i := range b.Blocks {
				b.Blocks[i].Transpose()
			}
			if err := s.Part(&part, 10, 2000); err != nil {
				t.Error(err)
			}
			part.Transpose()
		}
		for range 8 {
			run()
		}
		if got := testing.AllocsPerRun(20, run); got != 0 {
			t.Errorf("dense %v: %v allocations a step", dense, got)
		}
	}
}

// A sampler's table takes what is forecast for the batch that it has drawn.
func TestTableBytes(t *testing.T) {
	for _, c := range []struct{ batch, vertices int }{{0, 100}, {3, 1 << 20}, {600, 1 << 20}, {5000, 1 << 20}, {40_000, 1 << 20}, {1 << 20, 1 << 20}} {
		n := newSeen(c.vertices)
		n.reserve(c.batch, nil)
		if took, want := uint64(8*(len(n.sparse)+len(n.dense))), TableBytes(c.batch, c.vertices); took != want {
			t.Errorf("%d of %d vertices: %d bytes, and forecast are %d", c.batch, c.vertices, took, want)
		}
	}
}
