package sample

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

func TestPartIsAsWrittenDown(t *testing.T) {
	const n = 300
	edges := wild(n, 4000, 8)
	ids := make([]uint32, n)
	for v := range ids {
		ids[v] = uint32(v)
	}
	for _, weighted := range []bool{false, true} {
		to := topology(t, cut(edges, weighted, 1, 100, 100, 200, n))
		for _, form := range forms() {
			o := Options{Form: form}
			a, s := newNaive(n, edges, weighted, o), New(to, o)
			var b Block
			for _, r := range [][2]int{{0, 0}, {0, n}, {1, 99}, {100, 100}, {150, 7}, {99, 2}, {n - 1, 1}, {n, 0}, {130, 120}} {
				first, count := r[0], r[1]
				if err := s.Part(&b, first, count); err != nil {
					t.Fatal(err)
				}
				if b.Own != first || b.Cols != n || b.Vertices != nil {
					t.Fatalf("own %d, %d columns", b.Own, b.Cols)
				}
				want := layer{}
				for v := first; v < first+count; v++ {
					want.rows = append(want.rows, a.row(0, 0, 0, uint32(v), 0))
				}
				valued := form.Weighting == Symmetric || form.Weighting == Sums && (weighted || b.Values != nil)
				if err := want.sameRows(&b, ids, valued); err != nil {
					t.Fatalf("weighted %v, %v, %v: %v", weighted, form, r, err)
				}
			}
		}
	}
}

// TestPartIsTheWholeSample compares bit by bit with what is sampled at a fan-out
// that takes all.
func TestPartIsTheWholeSample(t *testing.T) {
	const n = 400
	to := topology(t, cut(wild(n, 5000, 4), true, 150, n))
	roots := make([]uint32, 130)
	for i := range roots {
		roots[i] = uint32(100 + i)
	}
	for _, form := range forms() {
		s := New(to, Options{Fanouts: []int{0}, Form: form})
		var b Batch
		var p Block
		if err := s.Sample(t.Context(), &b, 0, 0, roots); err != nil {
			t.Fatal(err)
		}
		if err := s.Part(&p, 100, len(roots)); err != nil {
			t.Fatal(err)
		}
		x := &b.Blocks[0]
		for i, u := range x.Indices {
			if x.Vertices[u] != uint32(p.Indices[i]) {
				t.Fatalf("%v: entry %d", form, i)
			}
		}
		if !slices.Equal(x.Indptr, p.Indptr) || !slices.Equal(x.Values, p.Values) {
			t.Errorf("%v: bounds or values differ", form)
		}
	}
}

func TestPartsOfOneShardAreNotCopied(t *testing.T) {
	const n = 400
	shards := cut(wild(n, 5000, 4), true, 150, n)
	to := topology(t, shards)
	for _, w := range []Weighting{Ones, Sums} {
		s := New(to, Options{Form: Form{Weighting: w}})
		var b Block
		if err := s.Part(&b, 160, 100); err != nil {
			t.Fatal(err)
		}
		if unsafe.SliceData(b.Indices) != unsafe.SliceData(shards[1].Indices) || &b.Indptr[0] != &shards[1].Indptr[10] {
			t.Error("edges were copied")
		}
		if want := w == Sums; (unsafe.SliceData(b.Values) == unsafe.SliceData(shards[1].Weights)) != want {
			t.Error("weights are not those of the shard")
		}
		before := slices.Clone(shards[1].Indices)
		if err := s.Part(&b, 100, 200); err != nil { // is built, and not into the shard
			t.Fatal(err)
		}
		if !slices.Equal(before, shards[1].Indices) {
			t.Error("the shard was written to")
		}
	}
}

func TestPartsThatAreNotThere(t *testing.T) {
	s := New(topology(t, cut(nil, false, 10)), Options{})
	for _, r := range [][2]int{{-1, 2}, {0, -1}, {0, 11}, {10, 1}, {11, 0}, {5, 1 << 62}} {
		if err := s.Part(&Block{}, r[0], r[1]); err == nil || !strings.Contains(err.Error(), "in a graph of 10") {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestABlockHasSoManyEdges asks for more than the numbers of a transpose can count.
func TestABlockHasSoManyEdges(t *testing.T) {
	const many = 1 << 30
	shard := &graph.Shard{Shards: 1, Vertices: 3, Total: 3, Indptr: []int64{0, many, 2 * many, 3 * many}}
	s := New(topology(t, []*graph.Shard{shard}), Options{})
	if err := s.Part(&Block{}, 0, 2); err == nil || !strings.Contains(err.Error(), "the 2 vertices from 0 on have 2147483648 edges, and a block at most 2147483647") {
		t.Error(err)
	}
	if err := s.Part(&Block{}, 1, 1); err != nil {
		t.Error(err)
	}
}

func TestTranspose(t *testing.T) {
	const n = 900
	to := topology(t, cut(wild(n, 9000, 4), true, 150, n))
	s := New(to, Options{Fanouts: []int{0, 3}})
	var b Batch
	var p Block
	roots := []uint32{0, 3, 1, 2, 4, 800, 5}
	if err := s.Sample(t.Context(), &b, 0, 0, roots); err != nil {
		t.Fatal(err)
	}
	blocks := []*Block{&b.Blocks[0], &b.Blocks[1], &p}
	for _, r := range [][2]int{{0, n}, {200, 300}, {n - 3, 3}, {5, 0}, {5, 1}} {
		if err := s.Part(&p, r[0], r[1]); err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			b.Transpose()
			got, at := b.Transposed, 0
			if len(got.Indptr) != b.Cols+1 || got.Indptr[0] != 0 || len(got.Rows) != b.Entries() || len(got.Edges) != b.Entries() {
				t.Fatalf("%d bounds, %d rows, %d edges", len(got.Indptr), len(got.Rows), len(got.Edges))
			}
			rowOf := make([]int32, 0, b.Entries())
			for r := range b.Rows {
				for range b.Indptr[r+1] - b.Indptr[r] {
					rowOf = append(rowOf, int32(r))
				}
			}
			for c := range b.Cols {
				for ; at < int(got.Indptr[c+1]); at++ {
					e := got.Edges[at]
					if int(b.Indices[b.Indptr[0]+int64(e)]) != c || rowOf[e] != got.Rows[at] {
						t.Fatalf("entry %d of column %d stands for %d in row %d", at, c, e, got.Rows[at])
					}
					if at > int(got.Indptr[c]) && got.Edges[at-1] >= e {
						t.Fatalf("column %d does not ascend", c)
					}
				}
			}
			if at != b.Entries() {
				t.Fatalf("%d entries of %d", at, b.Entries())
			}
		}
	}
}

// What a node holds for others draws the same rows, and has nothing of other shards.
func TestHeld(t *testing.T) {
	shards := []*graph.Shard{
		{Number: 0, Shards: 2, First: 0, Vertices: 2, Total: 4, Indptr: []int64{0, 1, 3}, Indices: []int32{3, 0, 2}},
		{Number: 1, Shards: 2, First: 2, Vertices: 2, Total: 4, Indptr: []int64{0, 2, 3}, Indices: []int32{0, 1, 2}},
	}
	whole, err := NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	held := whole.Held(func(first uint32) bool { return first == 2 })
	var drawn Drawn
	d := NewDrawer(held, Options{Fanouts: []int{0}})
	if _, err := d.Draw(t.Context(), &drawn, 1, 0, 0, []uint32{3, 2}, 100); err != nil || !slices.Equal(drawn.Sources, []int32{2, 0, 1}) {
		t.Errorf("drawn are %v, %v", drawn.Sources, err)
	}
	if _, err := d.Draw(t.Context(), &drawn, 1, 0, 0, []uint32{0}, 100); err == nil {
		t.Error("rows of another shard are drawn")
	}
	if held.Near(1) || !held.Near(2) || !whole.Near(1) || held.Edges() != whole.Edges() || held.parts[0].indices != nil {
		t.Errorf("held is %+v", held.parts)
	}
}
