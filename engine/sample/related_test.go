package sample

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// relatedShard is a graph of four vertices: 3 hears 0 under two relations, 1 and 2 under one.
func relatedShard() *graph.Shard {
	return &graph.Shard{
		Shards: 1, Vertices: 4, Total: 4, Indptr: []int64{0, 0, 1, 1, 5}, Indices: []int32{3, 0, 0, 1, 2},
		EdgeValues: graph.EdgeValues{Related: &graph.Related{Count: 3, Of: []float32{1, 0, 2, 2, 0}}},
	}
}

// sourcesOf returns the sources of a target's entries of a relation.
func (r *Related) sourcesOf(target, relation int) []int32 {
	for _, row := range r.Pairs.Indices[r.Pairs.Indptr[target]:r.Pairs.Indptr[target+1]] {
		if r.First[relation] <= int(row) && int(row) < r.First[relation+1] {
			return r.Indices[r.Indptr[row]:r.Indptr[row+1]]
		}
	}
	return nil
}

// TestBlocksByRelation holds that there is a row for each pair of a relation and a target that has
// entries, and for no other.
func TestBlocksByRelation(t *testing.T) {
	to, err := NewTopology([]*graph.Shard{relatedShard()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(to, Options{Fanouts: []int{0}, Form: Form{Relations: 3}})
	var b Batch
	if err := s.Sample(t.Context(), &b, 0, 0, []uint32{3, 1}); err != nil {
		t.Fatal(err)
	}
	block := &b.Blocks[0]
	r := block.Related
	if r == nil || r.Rows != 3 || r.Cols != block.Cols || !slices.Equal(r.First, []int{0, 1, 2, 3}) || block.Values != nil {
		t.Fatalf("the block by relation is %v, the values %v", r, block.Values)
	}
	for target, relations := range [][][]uint32{{{0, 2}, nil, {0, 1}}, {nil, {3}, nil}} {
		for relation, want := range relations {
			var got []uint32
			for _, i := range r.sourcesOf(target, relation) {
				got = append(got, block.Vertices[i])
			}
			if !slices.Equal(got, want) {
				t.Errorf("target %d has the sources %v of relation %d and not %v", target, got, relation, want)
			}
		}
	}
	if !slices.Equal(r.Pairs.Indptr, []int64{0, 2, 3}) || !slices.Equal(r.Pairs.Indices, []int32{0, 2, 1}) || r.Pairs.Cols != 3 {
		t.Errorf("the rows of targets are %v", r.Pairs)
	}
	block.Transpose()
	if r.Transposed == nil || len(r.Transposed.Rows) != 5 {
		t.Errorf("the transpose is %v", r.Transposed)
	}
	back := r.Pairs.Transposed
	if back == nil || !slices.Equal(back.Indptr, []int64{0, 1, 2, 3}) || !slices.Equal(back.Rows, []int32{0, 1, 0}) || !slices.Equal(back.Edges, []int32{0, 2, 1}) {
		t.Errorf("the targets of rows are %v", back)
	}
	// Models that do not ask see edges without weights.
	plain := New(to, Options{Fanouts: []int{0}, Form: Form{Weighting: Sums}})
	if err := plain.Sample(t.Context(), &b, 0, 0, []uint32{3}); err != nil {
		t.Fatal(err)
	}
	if got := b.Blocks[0].Values; b.Blocks[0].Related != nil || !slices.Equal(got, []float32{1, 1, 1, 1}) {
		t.Errorf("without relations the values are %v", got)
	}
}

// TestBlocksKnowTheFeaturesOfSources holds that blocks of all topologies of a graph with types know which
// features the sources of each relation have, and blocks of a graph without types nothing.
func TestBlocksKnowTheFeaturesOfSources(t *testing.T) {
	s := relatedShard()
	plain, err := NewTopology([]*graph.Shard{s})
	if err != nil {
		t.Fatal(err)
	}
	s = relatedShard()
	s.Related.Types = &graph.Types{
		Vertices:  []graph.VertexType{{Name: "a", Features: 2}, {Name: "b", First: 2, Features: 1, Bare: true}},
		Relations: []graph.Relation{{Source: "b"}, {Source: "a"}, {Source: "b"}},
	}
	whole, err := NewTopology([]*graph.Shard{s})
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := whole.Without(t.Context(), func(target, source uint32, _ int) bool { return target == 3 && source == 1 })
	if err != nil {
		t.Fatal(err)
	}
	held := whole.Held(func(uint32) bool { return true })
	want := []graph.FeatureRange{{First: 2, Count: 1, Alike: true}, {First: 0, Count: 2}, {First: 2, Count: 1, Alike: true}}
	for name, to := range map[string]*Topology{"plain": plain, "whole": whole, "fewer": fewer, "held": held} {
		sampler, b := New(to, Options{Fanouts: []int{0}, Form: Form{Relations: 3}}), Batch{}
		for range 2 { // memory of the first time is used again
			if err := sampler.Sample(t.Context(), &b, 0, 0, []uint32{3, 1}); err != nil {
				t.Fatal(err)
			}
		}
		r := b.Blocks[0].Related
		if name == "plain" {
			if at := []uint32{7}; r.Columns != nil || &b.Blocks[0].Stand(at)[0] != &at[0] {
				t.Errorf("a graph without types has sources with the features %v", r.Columns)
			}
			continue
		}
		if !slices.Equal(r.Columns, want) || len(r.Each) != 3 {
			t.Fatalf("%s: the sources have the features %v", name, r.Columns)
		}
		entries := 0
		for i := range r.Each {
			of := &r.Each[i]
			entries += of.Entries()
			if of.Rows != r.First[i+1]-r.First[i] || of.Cols != r.Cols || of.Stamp != 0 || of.First() != int(r.Indptr[r.First[i]]) {
				t.Errorf("%s: the rows of relation %d are %v", name, i, of)
			}
		}
		// 3 hears 0 and 2 by the first relation, and 0 and 1 by the third, unless that edge is left out.
		at, place := []uint32{10, 11, 12, 13, 14}[:len(b.Blocks[0].Vertices)], map[uint32]uint32{}
		for range 2 {
			for i, p := range b.Blocks[0].Stand(at) {
				place[b.Blocks[0].Vertices[i]] = p
			}
		}
		if place[0] != place[2] || place[3] == place[0] || (place[1] == place[0]) == (name == "fewer") || at[0] != 10 || at[1] != 11 {
			t.Errorf("%s: rows are read at %v", name, place)
		}
		if n := testing.AllocsPerRun(3, func() { b.Blocks[0].Stand(at) }); n != 0 {
			t.Errorf("%s: it allocates %g times", name, n)
		}
		if entries != r.Entries() {
			t.Errorf("%s: relations have %d of %d entries", name, entries, r.Entries())
		}
		// A part knows nothing, whatever the block was before.
		if err := sampler.Part(&b.Blocks[0], 0, 2); err != nil {
			t.Fatal(err)
		}
		if r := b.Blocks[0].Related; r == nil || r.Columns != nil {
			t.Errorf("%s: a part is %v", name, r)
		}
	}
}

// TestRelatedBytes compares what blocks by relation take with what is forecast, also where relations are
// many.
func TestRelatedBytes(t *testing.T) {
	for _, relations := range []int{3, 2000} {
		s := relatedShard()
		s.Related.Types = &graph.Types{Vertices: []graph.VertexType{{Name: "a", Features: 3}}, Relations: slices.Repeat([]graph.Relation{{Source: "a"}}, relations)}
		to, err := NewTopology([]*graph.Shard{s})
		if err != nil {
			t.Fatal(err)
		}
		form := Form{Relations: relations}
		sampler, b := New(to, Options{Fanouts: []int{0}, Form: form}), Batch{}
		if err := sampler.Sample(t.Context(), &b, 0, 0, []uint32{3, 1}); err != nil {
			t.Fatal(err)
		}
		block := &b.Blocks[0]
		block.Transpose()
		block.Stand(block.Vertices)
		r := &block.related
		got := 8*len(r.indptr) + 4*len(r.indices) + 8*len(r.First) + 8*len(r.byTarget) + 4*len(r.rows) + 4*len(r.pairs.Rows)
		got += len(r.next) * int(unsafe.Sizeof(cursor{}))
		size := Size{Targets: block.Rows, Sources: block.Cols, Entries: block.Entries()}
		if want := int(form.RelatedBytes(size, false)); got > want || want > got+256 {
			t.Errorf("%d relations: %d bytes are forecast, and %d are taken", relations, want, got)
		}
		got += 8*len(r.pairs.Indptr) + 4*len(r.pairs.Edges) + 4*len(r.places) + len(r.Each)*int(unsafe.Sizeof(tensor.CSR{}))
		if want := int(form.RelatedBytes(size, true)); got > want || want > got+256 {
			t.Errorf("%d relations: %d bytes are forecast with transposes, and %d are taken", relations, want, got)
		}
	}
}

// TestBlocksOfEachRelation keeps relations apart. 0 and 2 end at one type, 1 at another: 3 hears 0 and
// 2, and 1 hears 0 alone. 2 hears nobody.
func TestBlocksOfEachRelation(t *testing.T) {
	to, err := NewTopology([]*graph.Shard{relatedShard()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ends string
		want [][]int32 // columns of each row of Reach
		idle []bool
	}{
		{"4,1,4", [][]int32{{0, 6}, {4}, {}}, []bool{false, false, false}},
		{"", [][]int32{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}, []bool{false, false, false}},
		{"4,4,1", [][]int32{{0, 3}, {1, 4}, {}}, []bool{false, false, true}},
	} {
		s := New(to, Options{Fanouts: []int{0}, Form: Form{Relations: 3, Apart: true, Ends: c.ends}})
		var b Batch
		for range 2 { // memory of the first time is used again
			if err := s.Sample(t.Context(), &b, 0, 0, []uint32{3, 1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		block := &b.Blocks[0]
		block.Transpose()
		if !slices.Equal(block.Idle, c.idle) {
			t.Errorf("ends %q: relations that reach no target: %v", c.ends, block.Idle)
		}
		if block.Related != nil || block.Values != nil || len(block.Apart) != 3 {
			t.Fatalf("the block is %+v", block)
		}
		want := [][][]uint32{{{0, 2}, {}, {}}, {{}, {3}, {}}, {{0, 1}, {}, {}}}
		entries := 0
		for r := range block.Apart {
			g := &block.Apart[r]
			for row, sources := range want[r] {
				got := []uint32{}
				for _, i := range g.Indices[g.Indptr[row]:g.Indptr[row+1]] {
					got = append(got, block.Vertices[i])
				}
				if !slices.Equal(got, sources) {
					t.Errorf("relation %d: row %d has the sources %v and not %v", r, row, got, sources)
				}
			}
			if g.Transposed == nil || g.Stamp == 0 {
				t.Fatalf("relation %d has the transpose %v and the stamp %d", r, g.Transposed, g.Stamp)
			}
			entries += len(g.Transposed.Rows)
		}
		for row, columns := range c.want {
			if got := block.Reach.Indices[block.Reach.Indptr[row]:block.Reach.Indptr[row+1]]; !slices.Equal(got, columns) {
				t.Errorf("ends %q: row %d is reached by %v and not %v", c.ends, row, got, columns)
			}
		}
		if entries != 5 || block.Reach.Transposed == nil || block.Reach.Cols != 9 {
			t.Errorf("the transposes have %d entries, those of reach are %v", entries, block.Reach.Transposed)
		}
	}
}

func TestRelationsFromOtherNodesAreChecked(t *testing.T) {
	s := &Sampler{o: Options{Form: Form{Relations: 3}}}
	for _, c := range []struct {
		weights []float32
		want    string
	}{
		{[]float32{0, 2}, ""},
		{nil, "without the relations"},
		{[]float32{0, 3}, "the relation 3 of 3"},
		{[]float32{-1, 0}, "the relation -1 of 3"},
	} {
		err := s.checkRelations(&Drawn{Sources: []int32{0, 1}, Weights: c.weights})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.weights, err)
		}
	}
}
