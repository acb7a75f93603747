package sample

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// weighedPath is a graph in two shards, whose vertices have their neighbours by number, and a
// loop at 3.
func weighedPath(drop func(target, source uint32) bool) []*graph.Shard {
	var all []*graph.Shard
	for n, bounds := range [][2]int{{0, 4}, {4, 9}} {
		s := &graph.Shard{Number: n, First: uint32(bounds[0]), Vertices: bounds[1] - bounds[0], Total: 9, Indptr: []int64{0}}
		for v := bounds[0]; v < bounds[1]; v++ {
			for _, u := range []int{v - 2, v - 1, v, v + 1} {
				if u < 0 || u > 8 || u == v && v != 3 || drop(uint32(v), uint32(u)) {
					continue
				}
				s.Indices, s.Weights = append(s.Indices, int32(u)), append(s.Weights, float32(10*v+u))
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		all = append(all, s)
	}
	return all
}

// A topology without some edges is that of a graph that never had them, degrees included.
func TestWithoutEdges(t *testing.T) {
	gone := func(target, source uint32) bool { return target >= 4 && (target+source)%3 == 0 }
	hidden := func(target, source uint32, _ int) bool { return gone(target, source) }
	whole, err := NewTopology(weighedPath(func(_, _ uint32) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	got, err := whole.Without(t.Context(), hidden)
	if err != nil {
		t.Fatal(err)
	}
	want, err := NewTopology(weighedPath(gone))
	if err != nil {
		t.Fatal(err)
	}
	if got.Edges() != want.Edges() || got.Edges() >= whole.Edges() {
		t.Errorf("%d edges, want %d of %d", got.Edges(), want.Edges(), whole.Edges())
	}
	for v := range 9 {
		sources, weights := got.Row(v)
		wanted, of := want.Row(v)
		if !slices.Equal(sources, wanted) || !slices.Equal(weights, of) {
			t.Errorf("vertex %d has %v with %v, want %v with %v", v, sources, weights, wanted, of)
		}
	}
	for _, loops := range []bool{false, true} {
		if !slices.Equal(got.Inverse(loops), want.Inverse(loops)) || slices.Equal(got.Inverse(loops), whole.Inverse(loops)) {
			t.Errorf("degrees %v, want %v", got.Inverse(loops), want.Inverse(loops))
		}
	}
	// The first shard loses nothing.
	if bytes, most := got.Bytes(whole), uint64(8*6+8*len(weighedPath(gone)[1].Indices)); bytes != most {
		t.Errorf("the copy takes %d bytes, want %d", bytes, most)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(io.ErrClosedPipe)
	if _, err := whole.Without(ended, hidden); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, though it was to end", err)
	}
}

// Edges that are on another node can't be left out.
func TestWithoutEdgesElsewhere(t *testing.T) {
	whole, err := NewTopology(weighedPath(func(_, _ uint32) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	held := whole.Held(func(first uint32) bool { return first == 0 })
	if _, err := held.Without(t.Context(), func(_, _ uint32, _ int) bool { return true }); err == nil || err.Error() != "sample: the edges of the vertices 4 to 8 are not all here" {
		t.Error(err)
	}
}

// What is removed from a block is gone, and the rest stays in its order, with its values.
func TestRemoveFromABlock(t *testing.T) {
	whole, err := NewTopology(weighedPath(func(_, _ uint32) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	for _, weighting := range []Weighting{Ones, Sums, Symmetric} {
		s := New(whole, Options{Fanouts: []int{2, 0}, Form: Form{SelfLoops: true, Weighting: weighting}, Seed: 5})
		var b Batch
		for step := range uint64(20) {
			if err := s.Sample(t.Context(), &b, 1, step, []uint32{3, 8, 0, 5}); err != nil {
				t.Fatal(err)
			}
			for i := range b.Blocks {
				block := &b.Blocks[i]
				r := rand.New(rand.NewPCG(step, uint64(i)))
				drop := map[[2]int]bool{}
				type entry struct {
					target, source int
					value          float32
				}
				list := func() (all []entry) {
					for target := range block.Rows {
						for at := block.Indptr[target]; at < block.Indptr[target+1]; at++ {
							e := entry{target, int(block.Indices[at]), 1}
							if block.Values != nil {
								e.value = block.Values[at]
							}
							all = append(all, e)
						}
					}
					return all
				}
				before := list()
				for _, e := range before {
					drop[[2]int{e.target, e.source}] = r.IntN(3) == 0
				}
				want := slices.DeleteFunc(before, func(e entry) bool { return drop[[2]int{e.target, e.source}] })
				stamp := block.Stamp
				block.Remove(func(target, source, _ int) bool { return drop[[2]int{target, source}] })
				if got := list(); !slices.Equal(got, want) || len(block.Indices) != len(want) || block.Stamp == stamp {
					t.Fatalf("step %d, block %d: %v, want %v", step, i, got, want)
				}
			}
		}
	}
}
