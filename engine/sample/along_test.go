package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// describedShards are two shards of a graph whose edges' features say which edges they are. With half
// they are BF16.
func describedShards(half bool) []*graph.Shard {
	const vertices = 40
	r := rand.New(rand.NewPCG(1, 2))
	var all []*graph.Shard
	for first := uint32(0); first < vertices; first += vertices / 2 {
		s := &graph.Shard{Number: len(all), Shards: 2, First: first, Vertices: vertices / 2, Total: vertices, Indptr: []int64{0}, DType: graph.F32}
		s.EdgeRows.Columns = 2
		for v := range uint32(vertices / 2) {
			for u := range int32(vertices) {
				if r.IntN(4) == 0 {
					row := []float32{float32(first + v), float32(u)}
					s.Indices, s.Weights = append(s.Indices, u), append(s.Weights, float32(u)/8)
					if s.EdgeRows.F32 = append(s.EdgeRows.F32, row...); half {
						var to [2]uint16
						graph.ToBF16(to[:], row)
						s.EdgeRows.BF16 = append(s.EdgeRows.BF16, to[:]...)
					}
				}
			}
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
		if half {
			s.EdgeRows.F32 = nil
		}
		all = append(all, s)
	}
	return all
}

// TestEntriesHaveTheirEdgesFeatures draws some of the edges, and all.
func TestEntriesHaveTheirEdgesFeatures(t *testing.T) {
	for i := range 16 {
		half, loops, fanout, weighting := i&1 != 0, i&2 != 0, []int{0, 3}[i>>2&1], []Weighting{Ones, Sums}[i>>3]
		name := fmt.Sprintf("half=%v,loops=%v,fanout=%d,weighting=%d", half, loops, fanout, weighting)
		to, err := NewTopology(describedShards(half))
		if err != nil {
			t.Fatal(err)
		}
		s := New(to, Options{Fanouts: []int{fanout, fanout}, Seed: 3, Form: Form{SelfLoops: loops, Weighting: weighting, Along: true, EdgeFeatures: 2}})
		even := some(to.Vertices(), func(v int) bool { return v%2 == 0 })
		part, err := to.Confine(Confines{Rows: some(to.Vertices(), func(v int) bool { return v != 5 }), Sources: even, Keep: elsewhereKept{}})
		if err != nil {
			t.Fatal(err)
		}
		fewer, err := part.Confine(Confines{Rows: even})
		if err != nil {
			t.Fatal(err)
		}
		less, err := to.Without(t.Context(), func(target, source uint32, _ int) bool { return (target+source)%3 == 0 })
		if err != nil {
			t.Fatal(err)
		}
		lesser, err := less.Confine(Confines{Rows: even, Keep: elsewhereKept{}})
		if err != nil {
			t.Fatal(err)
		}
		for where, of := range map[string]*Topology{"all": to, "a part": part, "a part of it": fewer, "some edges": less, "a part of them": lesser} {
			s.Within(of)
			var b Batch
			for step := range uint64(6) { // memory is used again
				if s.Prune(nil); step%2 == 1 {
					s.Prune(fifths{})
				}
				if err := s.Sample(t.Context(), &b, 1, step, []uint32{7, 31, 4, 22}); err != nil {
					t.Fatal(err)
				}
				for n := range b.Blocks {
					b.Blocks[n].Transpose()
					checkAlong(t, name+" of "+where, &b.Blocks[n], loops)
				}
			}
		}
	}
}

// fifths take a fifth of the entries out of blocks, but no self-loops.
type fifths struct{}

func (fifths) Prune(b *Block, _ bool) {
	b.Remove(func(target, source, entry int) bool { return target != source && entry%5 == 1 })
}

// elsewhereKept keeps copies.
type elsewhereKept struct{}

func (elsewhereKept) KeepOffsets(all []int64) ([]int64, error)     { return slices.Clone(all), nil }
func (elsewhereKept) KeepIDs(all []int32) ([]int32, error)         { return slices.Clone(all), nil }
func (elsewhereKept) KeepWeights(all []float32) ([]float32, error) { return slices.Clone(all), nil }

func checkAlong(t *testing.T, name string, block *Block, loops bool) {
	t.Helper()
	a, n := block.Along, block.Entries()
	if a == nil || len(a.Rows) != 2*n || a.Sources.Rows != n || a.Sources.Cols != block.Cols || a.Targets.Rows != block.Rows || a.Targets.Cols != n || len(a.Vertices) != n+block.Rows {
		t.Fatalf("%s: %+v of %d entries", name, a, n)
	}
	if !slices.Equal(a.Targets.Values, block.Values) || (a.Targets.Values == nil) != (block.Values == nil) {
		t.Fatalf("%s: the values are %v and not %v", name, a.Targets.Values, block.Values)
	}
	for target := range block.Rows {
		sum, count := [2]float32{}, float32(0)
		for e := a.Targets.Indptr[target+1] - 1; e >= a.Targets.Indptr[target]; e-- {
			v, u := block.Vertices[target], block.Vertices[block.Indices[e]]
			row := [2]float32(a.Rows[2*e:])
			own := row == [2]float32{float32(v), float32(u)}
			if loop := loops && u == v && !own; loop && (e != a.Targets.Indptr[target] || !closeTo(row, sum, max(1, count))) || !loop && !own {
				t.Fatalf("%s: the edge from %d to %d has %v", name, u, v, row)
			}
			sum[0], sum[1], count = sum[0]+row[0], sum[1]+row[1], count+1
			if a.Targets.Indices[e] != int32(e) || a.Sources.Indptr[e] != e || a.Sources.Indptr[e+1] != e+1 || a.Sources.Indices[e] != block.Indices[e] || a.Vertices[e] != u || a.Vertices[n+target] != v {
				t.Fatalf("%s: entry %d of target %d is in %+v", name, e, target, a)
			}
			if back := a.Targets.Transposed; back.Indptr[e] != e || back.Rows[e] != int32(target) || back.Edges[e] != int32(e) {
				t.Fatalf("%s: entry %d goes back to %+v", name, e, back)
			}
		}
	}
	back := a.Sources.Transposed
	for c := range block.Cols {
		for at := back.Indptr[c]; at < back.Indptr[c+1]; at++ {
			if e := back.Rows[at]; block.Indices[e] != int32(c) || back.Edges[at] != e || at > back.Indptr[c] && back.Rows[at-1] >= e {
				t.Fatalf("%s: source %d goes back to %+v", name, c, back)
			}
		}
	}
	if len(back.Rows) != n {
		t.Fatalf("%s: %d entries go back, of %d", name, len(back.Rows), n)
	}
}

func closeTo(row, sum [2]float32, count float32) bool {
	for c := range row {
		if d := row[c] - sum[c]/count; d > 1e-4 || d < -1e-4 {
			return false
		}
	}
	return true
}

func TestFeaturesOfEdgesElsewhere(t *testing.T) {
	shards := describedShards(false)
	far := &graph.Shard{Number: 1, Shards: 2, First: shards[1].First, Vertices: shards[1].Vertices, Total: shards[1].Total}
	to, err := NewPartial([]*graph.Shard{shards[0], far}, []*Summary{nil, {Edges: 3}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(to, Options{Fanouts: []int{0}, Form: Form{Along: true, EdgeFeatures: 2}})
	if err := s.Sample(t.Context(), new(Batch), 0, 0, []uint32{3}); err == nil || !strings.Contains(err.Error(), "use {topology}=replicated") {
		t.Errorf("edges on another node: %v", err)
	}
}

// TestAlongBytes compares what blocks take for rows of entries with what is forecast.
func TestAlongBytes(t *testing.T) {
	to, err := NewTopology(describedShards(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, loops := range []bool{false, true} {
		form := Form{Along: true, EdgeFeatures: 2, SelfLoops: loops}
		s := New(to, Options{Fanouts: []int{0}, Form: form})
		var b Batch
		if err := s.Sample(t.Context(), &b, 0, 0, []uint32{1, 2, 3, 20}); err != nil {
			t.Fatal(err)
		}
		block := &b.Blocks[0]
		block.Transpose()
		a := block.Along
		got := uint64(4*len(a.Rows) + 4*len(a.loops) + 8*len(a.counts) + 4*len(a.places) + 4*len(a.rows) + 4*len(a.Vertices))
		if want := form.RelatedBytes(Size{Targets: block.Rows, Sources: block.Cols, Entries: block.Entries()}, true); got > want || want > got+64 {
			t.Errorf("with self-loops=%v %d bytes are forecast, and %d are taken", loops, want, got)
		}
	}
}
