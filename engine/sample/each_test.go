package sample

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
)

// typedShards are two shards of a graph of 400 vertices, whose edges are of three relations. The
// first vertices have many edges, of which most are of one relation.
func typedShards() []*graph.Shard {
	const vertices, relations = 400, 3
	r := rand.New(rand.NewPCG(4, 4))
	var shards []*graph.Shard
	for k := range 2 {
		first := k * vertices / 2
		s := &graph.Shard{Number: k, Shards: 2, First: uint32(first), Vertices: vertices / 2, Total: vertices, Indptr: []int64{0}}
		s.Related = &graph.Related{Count: relations}
		for v := range vertices / 2 {
			degree := r.IntN(12)
			if v%40 == 0 {
				degree = 200
			}
			for range degree {
				s.Indices = append(s.Indices, int32(r.IntN(vertices)))
			}
			row := s.Indices[s.Indptr[v]:]
			slices.Sort(row)
			row = slices.Compact(row)
			for range row {
				of := r.IntN(relations)
				if v%40 == 0 && r.IntN(10) > 0 {
					of = 1
				}
				s.Related.Of = append(s.Related.Of, float32(of))
			}
			s.Indices = s.Indices[:int(s.Indptr[v])+len(row)]
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		shards = append(shards, s)
	}
	return shards
}

func typedTopology(t *testing.T) *Topology {
	t.Helper()
	to, err := NewTopology(typedShards())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

var eachOptions = Options{Fanouts: []int{9, 70}, Each: [][]int{{2, 3, 4}, {1, 68, 1}}, Form: Form{Relations: 3}, Seed: 5}

// sampled draws the blocks of the vertices 0, 10, 20 and so on.
func sampledEach(t *testing.T, to *Topology, o Options, step uint64) *Batch {
	t.Helper()
	var roots []uint32
	for v := uint32(0); v < 400; v += 10 {
		roots = append(roots, v)
	}
	b := new(Batch)
	if err := New(to, o).Sample(t.Context(), b, 1, step, roots); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEachRelationHasItsFanout compares drawn rows with whole ones.
func TestEachRelationHasItsFanout(t *testing.T) {
	to := typedTopology(t)
	related := to.formed(eachOptions.Form)
	b := sampledEach(t, to, eachOptions, 0)
	cut := 0
	for h, fanouts := range eachOptions.Each {
		block := &b.Blocks[len(b.Blocks)-1-h]
		for target := range block.Rows {
			sources, relations := related.Row(int(block.Vertices[target]))
			for of, fanout := range fanouts {
				var all []int32
				for i, x := range relations {
					if int(x) == of {
						all = append(all, sources[i])
					}
				}
				var got []int32
				for _, u := range block.Related.sourcesOf(target, of) {
					got = append(got, int32(block.Vertices[u]))
				}
				slices.Sort(got)
				if len(got) != min(len(all), fanout) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Fatalf("vertex %d: %v of the sources %v of relation %d, by a fan-out of %d", block.Vertices[target], got, all, of, fanout)
				}
				for _, u := range got {
					if !slices.Contains(all, u) {
						t.Fatalf("vertex %d: %d is no source under relation %d", block.Vertices[target], u, of)
					}
				}
				if len(all) > fanout {
					cut++
				}
			}
		}
	}
	if cut < 50 {
		t.Errorf("only %d rows were cut", cut)
	}
}

// TestEachEntryIsDrawnAsOften counts which entries of a row are drawn in many steps.
func TestEachEntryIsDrawnAsOften(t *testing.T) {
	to := typedTopology(t)
	sources, relations := to.formed(eachOptions.Form).Row(0)
	const steps = 4000
	times := make([]int, len(sources))
	d := NewDrawer(to, eachOptions)
	var drawn Drawn
	for step := range uint64(steps) {
		if _, err := d.Draw(t.Context(), &drawn, 1, step, 0, []uint32{0}, 1000); err != nil {
			t.Fatal(err)
		}
		for _, u := range drawn.Sources {
			times[slices.Index(sources, u)]++
		}
	}
	count := [3]int{}
	for _, x := range relations {
		count[int(x)]++
	}
	for i, n := range times {
		of := int(relations[i])
		share := min(1, float64(eachOptions.Each[0][of])/float64(count[of]))
		want := steps * share
		if float64(n) < want*0.5-10 || float64(n) > want*1.5+10 {
			t.Errorf("entry %d, one of %d of relation %d, was drawn %d times and not about %.0f", i, count[of], of, n, want)
		}
	}
}

// TestDrawersAndCountersDrawEachAlike compares what nodes draw for others, and what is counted,
// with the sampler's blocks.
func TestDrawersAndCountersDrawEachAlike(t *testing.T) {
	to := typedTopology(t)
	b := sampledEach(t, to, eachOptions, 7)
	d := NewDrawer(to, eachOptions)
	var drawn Drawn
	for h := range eachOptions.Fanouts {
		block := &b.Blocks[len(b.Blocks)-1-h]
		targets := block.Vertices[:block.Rows]
		for done := 0; done < len(targets); {
			n, err := d.Draw(t.Context(), &drawn, 1, 7, h, targets[done:], 300)
			if err != nil || n < 1 {
				t.Fatal(n, err)
			}
			for i := range n {
				from, end := drawn.Indptr[i], drawn.Indptr[i+1]
				if int64(drawn.Degrees[i]) != end-from {
					t.Fatalf("a row of %d entries has the degree %d", end-from, drawn.Degrees[i])
				}
				if end-from != block.Indptr[done+i+1]-block.Indptr[done+i] {
					t.Fatalf("hop %d: row %d has %d entries for others", h, done+i, end-from)
				}
				for of := range 3 {
					sources, at := block.Related.sourcesOf(done+i, of), 0
					for e := from; e < end; e++ {
						if int(drawn.Weights[e]) != of {
							continue
						}
						if u := block.Vertices[sources[at]]; int32(u) != drawn.Sources[e] {
							t.Fatalf("hop %d: row %d of relation %d has the source %d for others, and %d here", h, done+i, of, drawn.Sources[e], u)
						}
						at++
					}
				}
			}
			done += n
		}
	}
	var roots []uint32
	for v := uint32(0); v < 400; v += 10 {
		roots = append(roots, v)
	}
	c := NewCounter(to, eachOptions)
	sizes, err := c.Count(t.Context(), nil, 1, 7, roots)
	if err != nil {
		t.Fatal(err)
	}
	for i, z := range sizes {
		block := &b.Blocks[i]
		if want := (Size{block.Rows, block.Cols, len(block.Indices)}); z != want {
			t.Errorf("block %d is counted as %+v, and is %+v", i, z, want)
		}
	}
	if !slices.Equal(c.Vertices(), b.Blocks[0].Vertices) {
		t.Error("other vertices are counted")
	}
}

// TestRowsOfHubsEndAnAnswer asks for a hub again and again: rows come as long as they are read fast,
// and none to those who wait no longer.
func TestRowsOfHubsEndAnAnswer(t *testing.T) {
	before := mostRead
	defer func() { mostRead = before }()
	d, hubs := NewDrawer(typedTopology(t), eachOptions), make([]uint32, 1000)
	var drawn Drawn
	if n, err := d.Draw(t.Context(), &drawn, 1, 0, 0, hubs, 1<<30); err != nil || n != len(hubs) {
		t.Fatalf("%d rows of %d, %v", n, len(hubs), err)
	}
	whole, degree := slices.Clone(drawn.Sources), d.t.Degree(0)
	for most, rows := range map[int]int{0: 1, degree: 1, 2*degree - 1: 1, 7*degree + 3: 7} {
		mostRead = most
		n, err := d.Draw(t.Context(), &drawn, 1, 0, 0, hubs, 1<<30)
		if err != nil || n != rows || len(drawn.Degrees) != rows || !slices.Equal(drawn.Sources, whole[:drawn.Indptr[rows]]) {
			t.Errorf("%d rows of %d entries where %d are read at most, %v", n, degree, most, err)
		}
	}
	mostRead = before
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if n, err := d.Draw(ctx, &drawn, 1, 0, 0, hubs, 1<<30); !errors.Is(err, gone) || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestEachAllocatesNothing(t *testing.T) {
	to, b := typedTopology(t), new(Batch)
	s, roots := New(to, eachOptions), []uint32{0, 40, 80, 3, 5, 7}
	step := uint64(0)
	run := func() {
		step++
		if err := s.Sample(t.Context(), b, 1, step%3, roots); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		run()
	}
	if n := testing.AllocsPerRun(20, run); n > 0 {
		t.Errorf("a batch allocates %v times", n)
	}
}

func TestWrongFanoutsByRelationPanic(t *testing.T) {
	to := typedTopology(t)
	for _, o := range []Options{
		{Fanouts: []int{9}, Each: [][]int{{2, 3, 4}, {1, 1, 1}}, Form: Form{Relations: 3}},
		{Fanouts: []int{9}, Each: [][]int{{2, 3, 5}}, Form: Form{Relations: 3}},
		{Fanouts: []int{9}, Each: [][]int{{4, 5}}, Form: Form{Relations: 3}},
		{Fanouts: []int{9}, Each: [][]int{{9, 0, 0}}, Form: Form{Relations: 3}},
		{Fanouts: []int{9}, Each: [][]int{{2, 3, 4}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", o)
				}
			}()
			New(to, o)
		}()
	}
}

// TestRowsOfAnyLengthAreDrawnByRelation compares the positions drawn of rows that are sorted at once, or
// counted before, or of one relation, with those of each relation by itself.
func TestRowsOfAnyLengthAreDrawnByRelation(t *testing.T) {
	const relations = 3
	fanouts, key := []int{4, 2, 7}, keyed.New(1, keyed.Neighbor)
	var picked, plain picker
	for _, n := range []int{0, 1, 2, 3, 30, sortedAtOnce / relations, sortedAtOnce/relations + 1, 5000} {
		for _, kinds := range []int{1, 2, relations} {
			row, of, draws := make([]float32, n), [relations][]uint32{}, key.With(uint64(n)).Draws()
			for i := range row {
				r := draws.Below(uint64(kinds))
				row[i], of[r] = float32(r), append(of[r], uint32(i))
			}
			var want []uint32
			whole := true
			for r, positions := range of {
				if len(positions) <= fanouts[r] {
					want = append(want, positions...)
					continue
				}
				drawn := make([]uint32, fanouts[r])
				plain.without(drawn, uint32(len(positions)), key.With(uint64(r)))
				for _, p := range drawn {
					want = append(want, positions[p])
				}
				whole = false
			}
			got, all := picked.pickEach(nil, row, fanouts, key)
			if all != whole || !all && !slices.Equal(got, want) {
				t.Errorf("%d entries of %d relations: all %v, or those at %v, and not all %v, %v", n, kinds, all, got, whole, want)
			}
		}
	}
}
