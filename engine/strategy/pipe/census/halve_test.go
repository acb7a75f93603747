package census

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
)

// A shard of which nearly all sees another way stays whole, and one of which enough does not
// is two parts.
func TestSmallPartsAreNotWorthwhile(t *testing.T) {
	const n = 32
	for alone := range 9 {
		var shards []*graph.Shard
		for i := range 2 {
			s := &graph.Shard{Number: i, Shards: 2, First: uint32(i * n), Vertices: n, Total: 2 * n, Indptr: []int64{0}}
			for row := range n {
				if row >= alone {
					s.Indices = append(s.Indices, int32((1-i)*n+row))
				}
				s.Indptr = append(s.Indptr, int64(len(s.Indices)))
			}
			shards = append(shards, s)
		}
		topology, err := sample.NewTopology(shards)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := arrange.NewShape([]uint32{0, n, 2 * n}, nil, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		of := Halve(topology, shape, 0, 0, 0)
		want := alone
		if alone < n/8 {
			want = 0
		}
		if len(of[0]) != want || len(of[0])+len(of[1]) != n {
			t.Errorf("of %d vertices %d see nothing: parts of %d and %d", n, alone, len(of[0]), len(of[1]))
		}
	}
}
