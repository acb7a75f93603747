package sample

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Relations stay the values of entries, whatever the weighting and the fan-out, also of rows on
// other nodes.
func TestPlainBlocksHaveRelations(t *testing.T) {
	shards := []*graph.Shard{relatedShard()}
	whole := topology(t, shards)
	away := partial(t, shards, func(int) bool { return true })
	for _, fanout := range []int{0, 2} {
		o := Options{Fanouts: []int{fanout}, Seed: 4, Form: Form{Relations: 3, Plain: true}}
		far := o
		far.Far = &elsewhere{t: t, drawer: NewDrawer(whole, o), partial: away}
		var first []string
		drawn := int(Kept(4, fanout)) // of vertex 3, and one of vertex 1
		for name, s := range map[string]*Sampler{"here": New(whole, o), "elsewhere": New(away, far)} {
			var b Batch
			if err := s.Sample(t.Context(), &b, 0, 0, []uint32{3, 1}); err != nil {
				t.Fatal(err)
			}
			block := &b.Blocks[0]
			if block.Related != nil || len(block.Values) != block.Entries() || block.Entries() != drawn+1 {
				t.Fatalf("%s, fan-out %d: %d values of %d entries, and %v by relation", name, fanout, len(block.Values), block.Entries(), block.Related)
			}
			var got []string
			for target := range block.Rows {
				for e := block.Indptr[target]; e < block.Indptr[target+1]; e++ {
					got = append(got, fmt.Sprint(block.Vertices[block.Indices[e]], block.Vertices[target], block.Values[e]))
				}
			}
			for _, edge := range got {
				if !slices.Contains([]string{"3 1 1", "0 3 0", "0 3 2", "1 3 2", "2 3 0"}, edge) {
					t.Errorf("%s, fan-out %d: there is no edge %s", name, fanout, edge)
				}
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("fan-out %d: %v is drawn, and %v with edges on other nodes or without", fanout, got, first)
			}
		}
	}
}

// Features of edges come without matrices, in the order of entries, with the edges' own weights.
func TestPlainBlocksHaveFeaturesOfEdges(t *testing.T) {
	to := topology(t, describedShards(true))
	for i := range 4 {
		fanout, loops := []int{0, 3}[i&1], i&2 != 0
		form := Form{Weighting: Own, EdgeFeatures: 2, Plain: true, SelfLoops: loops}
		s := New(to, Options{Fanouts: []int{fanout, fanout}, Seed: 3, Form: form})
		var b Batch
		for step := range uint64(3) { // memory is used again
			if err := s.Sample(t.Context(), &b, 1, step, []uint32{7, 31}); err != nil {
				t.Fatal(err)
			}
			for n := range b.Blocks {
				block := &b.Blocks[n]
				if block.Along == nil || block.Along.Sources.Indptr != nil || len(block.Along.Rows) != 2*block.Entries() {
					t.Fatalf("fan-out %d: %+v of %d entries", fanout, block.Along, block.Entries())
				}
				size, taken := Size{Targets: block.Rows, Sources: block.Cols, Entries: block.Entries()}, uint64(4*len(block.Along.Rows)+4*len(block.Along.loops))
				if bytes := form.RelatedBytes(size, true); bytes < taken || bytes > taken+uint64(4*block.Rows) {
					t.Errorf("%d bytes are forecast, and %d taken", bytes, taken)
				}
				for target := range block.Rows {
					sum, count := [2]float32{}, float32(0)
					for e := block.Indptr[target+1] - 1; e >= block.Indptr[target]; e-- {
						v, u := block.Vertices[target], block.Vertices[block.Indices[e]]
						row := [2]float32(block.Along.Rows[2*e:])
						own := row == [2]float32{float32(v), float32(u)} && block.Values[e] == float32(u)/8
						if added := loops && u == v && e == block.Indptr[target]; !own && (!added || !closeTo(row, sum, max(1, count))) {
							t.Fatalf("fan-out %d, loops=%v: the edge from %d to %d has %v and the weight %v", fanout, loops, u, v, row, block.Values[e])
						}
						sum[0], sum[1], count = sum[0]+row[0], sum[1]+row[1], count+1
					}
				}
			}
		}
	}
}
