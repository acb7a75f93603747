package sample

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// listed lists the columns of each row.
func listed(g *tensor.CSR) (rows [][]int32) {
	for r := range g.Rows {
		rows = append(rows, append([]int32{}, g.Indices[g.Indptr[r]:g.Indptr[r+1]]...))
	}
	return rows
}

func sameRows(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal[[]int32]) }

// TestBlocksOfAllRelations orders entries by relation and targets by type. 1 is of the second type,
// 3 of the third, and 2 hears nobody.
func TestBlocksOfAllRelations(t *testing.T) {
	to, err := NewTopology([]*graph.Shard{relatedShard()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ends   string
		types  []int
		order  [][]int32
		target [][]int32
	}{
		{"2,1,2", []int{0, 0, 1, 2, 3}, [][]int32{{2}, {0}, {1}}, [][]int32{{2}, {0, 3, 4, 1}, {}}},
		{"", []int{0, 2, 3}, [][]int32{{0}, {2}, {1}}, [][]int32{{0, 3, 4, 1}, {2}, {}}},
	} {
		s := New(to, Options{Fanouts: []int{0}, Form: Form{Relations: 3, Together: true, Ends: c.ends}})
		var b Batch
		for range 2 { // memory of the first time is used again
			if err := s.Sample(t.Context(), &b, 0, 0, []uint32{3, 2, 1}); err != nil {
				t.Fatal(err)
			}
		}
		block := &b.Blocks[0]
		o := block.Together
		if o == nil || block.Related != nil || block.Apart != nil || block.Values != nil {
			t.Fatalf("ends %q: the block is %+v", c.ends, block)
		}
		// 3 hears 0 and 2 by the first relation, 1 hears 3 by the second, and 3 hears 0 and 1 by the
		// third.
		var sources []uint32
		for _, at := range o.Sources.Indices {
			sources = append(sources, block.Vertices[at])
		}
		if !slices.Equal(o.Relations, []int{0, 2, 3, 5}) || !slices.Equal(sources, []uint32{0, 2, 3, 0, 1}) {
			t.Errorf("ends %q: relations begin at %v of entries from %v", c.ends, o.Relations, sources)
		}
		if !slices.Equal(o.Types, c.types) || !sameRows(listed(&o.Order), c.order) {
			t.Errorf("ends %q: types begin at %v of the targets %v", c.ends, o.Types, listed(&o.Order))
		}
		got := listed(&o.Targets)
		if !sameRows(got, c.target) || !sameRows(listed(&o.Pairs), [][]int32{{0, 1}, {2, 3}, {4, 5}}) {
			t.Errorf("ends %q: targets have the entries %v, and pairs are %v", c.ends, got, listed(&o.Pairs))
		}
		block.Transpose()
		for name, g := range map[string]*tensor.CSR{"order": &o.Order, "sources": &o.Sources, "targets": &o.Targets, "pairs": &o.Pairs} {
			twin := *g
			var back tensor.Transpose
			transpose(&twin, &back)
			if !slices.Equal(g.Transposed.Indptr, back.Indptr) || !slices.Equal(g.Transposed.Rows, back.Rows) || !slices.Equal(g.Transposed.Edges, back.Edges) || g.Stamp == 0 {
				t.Errorf("ends %q: the transpose of %s is %v and not %v", c.ends, name, g.Transposed, &back)
			}
		}
		// A part is ordered in the same way.
		if err := s.Part(block, 1, 3); err != nil {
			t.Fatal(err)
		}
		if o := block.Together; o == nil || !slices.Equal(o.Relations, []int{0, 2, 3, 5}) || o.Types[len(o.Types)-2] != 2 {
			t.Errorf("ends %q: a part is %+v", c.ends, o)
		}
	}
}

// TestTogetherBytes compares what blocks of all relations take with what is forecast.
func TestTogetherBytes(t *testing.T) {
	to, err := NewTopology([]*graph.Shard{relatedShard()})
	if err != nil {
		t.Fatal(err)
	}
	form := Form{Relations: 3, Together: true, Ends: "2,1,2"}
	b := Batch{}
	if err := New(to, Options{Fanouts: []int{0}, Form: form}).Sample(t.Context(), &b, 0, 0, []uint32{3, 2, 1}); err != nil {
		t.Fatal(err)
	}
	block, o := &b.Blocks[0], &b.Blocks[0].related.together
	taken := func() int {
		n := 8*(len(o.counts)+len(o.twos)+len(o.indptr)) + 4*(len(o.places)+len(o.halves))
		return n + 4*(len(o.order)+len(o.ranks)+len(o.sources)+len(o.entries)+len(o.targets)+len(o.edges))
	}
	size := Size{Targets: block.Rows, Sources: block.Cols, Entries: block.Entries()}
	// Lists by relation and by type have room for as many types as there may be.
	lists := int(unsafe.Sizeof(0)) * (len(o.Relations) + len(o.Types) + len(o.next))
	const most = 3 * 8 * (graph.MaxTypes + 2)
	if lists > most {
		t.Errorf("lists by relation and by type take %d bytes", lists)
	}
	if got, want := taken(), int(form.RelatedBytes(size, false))-most; got != want {
		t.Errorf("%d bytes are forecast, and %d are taken", want, got)
	}
	block.Transpose()
	got := taken() + 8*len(o.back[2].Indptr) + 4*(len(o.back[2].Rows)+len(o.back[2].Edges))
	if want := int(form.RelatedBytes(size, true)) - most; got != want {
		t.Errorf("%d bytes are forecast with transposes, and %d are taken", want, got)
	}
}
