package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Whole rows are those of a part of a whole layer, and need nothing of other nodes' shards.
func TestWholeRowsAreThoseOfParts(t *testing.T) {
	const n = 300
	edges := wild(n, 4000, 8)
	for _, weighted := range []bool{false, true} {
		shards := cut(edges, weighted, 1, 100, 100, 200, n)
		to := topology(t, shards)
		for _, form := range forms() {
			var all Block
			if err := New(to, Options{Form: form}).Part(&all, 0, n); err != nil {
				t.Fatal(err)
			}
			var inverse []float32
			if form.Weighting == Symmetric {
				inverse = to.Inverse(form.SelfLoops)
			}
			// Of the others nothing is known but how many edges they have.
			near := slices.Clone(shards)
			summaries := make([]*Summary, len(near))
			for i, shard := range near {
				if i%2 == 0 {
					far := *shard
					far.Indptr, far.Indices, far.Weights = nil, nil, nil
					near[i], summaries[i] = &far, &Summary{Edges: int64(len(shard.Indices))}
				}
			}
			partial, err := NewPartial(near, summaries)
			if err != nil {
				t.Fatal(err)
			}
			for at, r := range []*WholeRows{NewWholeRows(to, form), NewWholeRows(partial, form)} {
				for i, shard := range shards {
					if at == 1 && i%2 == 0 || shard.Vertices == 0 {
						continue
					}
					for v := shard.First; v < shard.First+uint32(shard.Vertices); v++ {
						mustBeRow(t, r, inverse, &all, shard, v)
					}
				}
			}
		}
	}
}

func mustBeRow(t *testing.T, r *WholeRows, inverse []float32, all *Block, shard *graph.Shard, v uint32) {
	t.Helper()
	from, to := all.Indptr[v], all.Indptr[v+1]
	loop, sources, weights := r.Row(v)
	var indices []int32
	var values []float32
	if loop {
		indices, values = append(indices, int32(v)), append(values, 1)
	}
	for i, u := range sources {
		x := float32(1)
		if weights != nil {
			x = weights[i]
		}
		indices, values = append(indices, u), append(values, x)
	}
	if r.Entries(v) != len(indices) || !slices.Equal(indices, all.Indices[from:to]) {
		t.Fatalf("vertex %d: %d and not %d", v, indices, all.Indices[from:to])
	}
	if r.Plain() {
		if indptr, run := r.Run(v, 1); !slices.Equal(run[indptr[0]:indptr[1]], indices) {
			t.Fatalf("vertex %d: the run is %d", v, run[indptr[0]:indptr[1]])
		}
	}
	if r.Rooted() {
		if of := math.Abs(float64(r.Inverses(shard.First)[v-shard.First])); float32(of) != inverse[v] {
			t.Fatalf("vertex %d: 1/sqrt(degree) is %g and not %g", v, of, inverse[v])
		}
		return
	}
	if got := all.Values; r.Valued() && got != nil && !slices.Equal(values, got[from:to]) {
		t.Fatalf("vertex %d: %g and not %g", v, values, got[from:to])
	}
}
