package build

import (
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// What is finite in the source is finite in the shard, or refused.
func TestNothingBecomesInfinite(t *testing.T) {
	source := func(weights []float32) *memory {
		return &memory{
			meta:  graph.Meta{Vertices: 2, Edges: 2, Weighted: weights != nil, Features: 1},
			edges: graph.EdgeBatch{Src: []uint32{1, 1}, Dst: []uint32{0, 0}, Weights: weights},
			rows:  [][]float32{{1}, {math.MaxFloat32}},
			batch: 2,
		}
	}
	finite := source(nil)
	finite.rows[1][0] = 2
	edges := described{memory: finite, features: []float32{math.MaxFloat32, math.MaxFloat32}}
	for want, c := range map[string]struct {
		src   graph.Source
		dtype graph.DType
	}{
		"add up to more": {source([]float32{3e38, 3e38}), graph.F32},
		"vertex 1, 3.4028235e+38, is beyond what bf16 holds":             {source(nil), graph.BF16},
		"a feature of an edge, 3.4028235e+38, is beyond what bf16 holds": {edges, graph.BF16},
	} {
		o := Options{Shards: 1, Partitioner: random, DType: c.dtype, Dir: t.TempDir() + "/shards", Scratch: t.TempDir()}
		if _, err := Run(t.Context(), c.src, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
