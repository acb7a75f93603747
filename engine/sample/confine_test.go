package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// confined is the naive sampler of those who see a part of a graph.
type confined struct {
	whole, seen *naive
	c           Confines
}

// newConfined leaves out what is not seen.
func newConfined(n int, edges []edge, weighted bool, o Options, c Confines) *confined {
	seen := slices.DeleteFunc(slices.Clone(edges), func(e edge) bool {
		return !c.Rows.Has(e.to) || c.Sources != nil && e.from != e.to && !c.Sources.Has(e.from)
	})
	return &confined{newNaive(n, edges, weighted, o), newNaive(n, seen, weighted, o), c}
}

// row is what is drawn for v, with values that stand for the whole row where messages
// have times.
func (a *confined) row(epoch, step, hop uint64, v uint32, fanout int) []entry {
	form := a.seen.o.Form
	sums := *a.seen
	sums.o.Form.Weighting = Sums
	row := sums.row(epoch, step, hop, v, fanout)
	loop, count := 0, float64(len(a.seen.in[v]))
	if a.seen.adds(v) {
		loop = 1
	}
	drawn, degree := float64(len(row)-loop), 0.0
	if a.c.Rows.Has(v) {
		degree = float64(len(a.whole.in[v]))
	}
	for i := range row {
		e := &row[i]
		if form.Weighting == Ones {
			e.value = 1
			if a.c.Times != nil {
				e.value = float64(len(row)) / (degree + float64(loop))
				if i >= loop {
					e.value *= count / drawn
				}
			}
		}
		if a.c.Times != nil && e.from != v {
			e.value *= float64(a.c.Times(v, e.from))
		}
		if form.Weighting != Symmetric {
			continue
		}
		if product := a.whole.degree(v) * a.whole.degree(e.from); product > 0 {
			e.value /= math.Sqrt(product)
		} else {
			e.value = 0
		}
	}
	return row
}

func (a *confined) sample(epoch, step uint64, roots []uint32) []layer {
	return layersOf(a.seen.o.Fanouts, roots, func(h int, v uint32, fanout int) []entry {
		return a.row(epoch, step, uint64(h), v, fanout)
	})
}

// some is a bit for each of n vertices, set where yes says so.
func some(n int, yes func(v int) bool) bits {
	to := make(bits, (n+63)/64)
	for v := range n {
		if yes(v) {
			to[v/64] |= 1 << (v % 64)
		}
	}
	return to
}

// bits has a bit for each vertex of a set.
type bits []uint64

func (b bits) Has(v uint32) bool { return b[v/64]>>(v%64)&1 != 0 }

func (b bits) Count(first, end uint32) (n int) {
	for v := first; v < end; v++ {
		if b.Has(v) {
			n++
		}
	}
	return n
}

// sights are ways to see a part of a graph of n vertices.
func sights(n int) map[string]Confines {
	times := func(v, u uint32) float32 { return float32(1 + (v+2*u)%5) }
	inner := some(n, func(v int) bool { return v < 333 })
	scattered := some(n, func(v int) bool { return v%3 > 0 })
	all := some(n, func(int) bool { return true })
	return map[string]Confines{
		"nothing":           {Rows: some(n, func(int) bool { return false })},
		"all":               {Rows: all},
		"rows of shards":    {Rows: inner},
		"what is inside":    {Rows: inner, Sources: inner},
		"scattered":         {Rows: scattered},
		"scattered sources": {Rows: scattered, Sources: some(n, func(v int) bool { return v%5 > 1 })},
		"all, counting":     {Rows: all, Times: times},
		"inside, counting":  {Rows: inner, Sources: inner, Times: times},
		"some, counting":    {Rows: scattered, Sources: inner, Times: times},
	}
}

// Whoever is confined draws as if what is not seen were not there, with the degrees of
// the whole graph.
func TestConfinedIsAsWrittenDown(t *testing.T) {
	const n = 700
	edges := wild(n, 6000, 4)
	for _, weighted := range []bool{false, true} {
		shards := cut(edges, weighted, 3, 70, 200, 200, 333, 600, n)
		for name, c := range sights(n) {
			r := rand.New(rand.NewPCG(8, 2))
			for _, form := range forms() {
				for _, fanouts := range [][]int{{0, 0}, {4, 2}, {5, 0, 3}} {
					o := Options{Fanouts: fanouts, Form: form, Seed: 7}
					for _, where := range []string{"here", "elsewhere"} {
						of := topology(t, shards)
						if where == "elsewhere" {
							of = partial(t, shards, func(i int) bool { return i%2 == 0 })
							c.Row = rowsOf(topology(t, shards), &c)
						}
						to, err := of.Confine(c)
						if err != nil {
							t.Fatal(err)
						}
						if where == "elsewhere" && form.Weighting == Symmetric {
							e := &elsewhere{t: t, drawer: NewDrawer(topology(t, shards), o), partial: of}
							to.Know(e.inverses)
						}
						a, s := newConfined(n, edges, weighted, o, c), New(topology(t, shards), o)
						s.Within(to)
						roots := distinct(r, n, 40)
						var b Batch
						if err := s.Sample(t.Context(), &b, 5, 1, roots); err != nil {
							t.Fatal(err)
						}
						for i, l := range a.sample(5, 1, roots) {
							if err := l.same(&b.Blocks[i], form.Weighting != Ones || c.Times != nil); err != nil {
								t.Fatalf("%s %s, weighted %v, %v, fan-outs %v, block %d: %v", name, where, weighted, form, fanouts, i, err)
							}
						}
						if err := counted(to, a, n); err != nil {
							t.Fatalf("%s %s: %v", name, where, err)
						}
					}
				}
			}
		}
	}
}

// rowsOf are brought as whoever has them would leave out what nobody sees.
func rowsOf(whole *Topology, c *Confines) func(v uint32) ([]int32, []float32, int) {
	return func(v uint32) ([]int32, []float32, int) {
		sources, weights := whole.Row(int(v))
		var left []int32
		var of []float32
		for i, u := range sources {
			if c.Sources == nil || uint32(u) == v || c.Sources.Has(uint32(u)) {
				left = append(left, u)
				if weights != nil {
					of = append(of, weights[i])
				}
			}
		}
		return left, of, len(sources)
	}
}

// counted says what is wrong with the rows and degrees that a topology tells of.
func counted(to *Topology, a *confined, n int) error {
	edges := int64(0)
	for v := range uint32(n) {
		sources, degree := to.Seen(v)
		edges += int64(len(sources))
		want := 0
		if a.c.Rows.Has(v) {
			want = len(a.whole.in[v])
		}
		if len(sources) != len(a.seen.in[v]) || degree != want {
			return fmt.Errorf("vertex %d has %d of %d edges, and should have %d of %d", v, len(sources), degree, len(a.seen.in[v]), want)
		}
	}
	if edges != to.Edges() {
		return fmt.Errorf("%d edges are %d", edges, to.Edges())
	}
	return nil
}

// What is seen whole is not copied, and turning from one sight to another takes no
// memory once each has been seen.
func TestConfiningCopiesNoWholeShards(t *testing.T) {
	const n = 700
	shards := cut(wild(n, 6000, 4), false, 200, 333, n)
	of := topology(t, shards)
	to, err := of.Confine(Confines{Rows: some(n, func(v int) bool { return v < 333 })})
	if err != nil {
		t.Fatal(err)
	}
	if sources, _ := to.Row(100); &sources[0] != &shards[0].Indices[shards[0].Indptr[100]] {
		t.Error("the row of a shard that is seen whole was copied")
	}
	if got, most := to.Copied(), uint64(8*(n-333+1)); got > most {
		t.Errorf("it takes %d bytes, and its largest shard's bounds %d", got, most)
	}
	all, err := of.Confine(Confines{Rows: some(n, func(int) bool { return true }), Times: func(_, _ uint32) float32 { return 2 }})
	if err != nil {
		t.Fatal(err)
	}
	s := New(of, Options{Fanouts: []int{3}, Form: Form{SelfLoops: true, Weighting: Symmetric}})
	s.Within(all)
	if got := testing.AllocsPerRun(10, func() { s.Within(to); s.Within(all) }); got > 0 {
		t.Errorf("turning takes %v allocations", got)
	}
	if err := s.Part(new(Block), 0, 10); err == nil || !strings.Contains(err.Error(), "whole layers") {
		t.Errorf("a layer in which messages count twice: %v", err)
	}
}

func TestConfinesThatCanNotBe(t *testing.T) {
	const n = 700
	shards := cut(wild(n, 6000, 4), false, 200, 333, n)
	far := partial(t, shards, func(i int) bool { return i == 1 })
	for want, c := range map[string]Confines{
		"the edges of vertex 200 are not here": {Rows: some(n, func(v int) bool { return v >= 200 })},
	} {
		if _, err := far.Confine(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a sampler draws from another graph")
		}
	}()
	New(far, Options{}).Within(topology(t, cut(nil, false, 1)))
}
