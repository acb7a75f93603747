package pipe

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// models are those of all kinds, of some layers.
var models = []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn"}

// With one chunk, or with all chunks computed side by side, nothing is older than now:
// whatever the stages and ways are, the gradient is that of one machine. Edges have a
// direction, and shards differ in size.
func TestExact(t *testing.T) {
	for i, model := range models {
		for _, c := range []struct{ stages, ways, chunks, nodes int }{
			{1, 1, 1, 1}, {2, 1, 1, 2}, {3, 1, 1, 3}, {4, 1, 1, 4},
			{1, 2, 2, 2}, {1, 4, 4, 4}, {1, 3, 3, 3}, {2, 2, 2, 4}, {2, 3, 3, 6},
			{1, 4, 4, 2}, {2, 1, 1, 5}, {1, 5, 5, 5},
		} {
			t.Run(fmt.Sprintf("%s/%d stages, %d ways, %d nodes", model, c.stages, c.ways, c.nodes), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, uint64(i), []int{4, 9, 0, 3, 7, 5, 6}, anywhere)
				w.sparse = i%2 == 0
				s := newSetup(deep(model, 4), c.stages, c.ways, c.chunks)
				s.nodes = c.nodes
				s.Recompute = c.stages > 1
				j := w.start(t, s)
				for epoch := 1; epoch < 3; epoch++ {
					got, loss := j.epoch(t, epoch)
					want, lost := w.whole(t, s, epoch, w.weights(j.model))
					mustNear(t, "the gradient", got, want, 1e-11)
					mustNear(t, "the loss", []float64{loss}, []float64{lost}, 1e-6)
				}
			})
		}
	}
}

// A way may have no vertices, and a position of all ways, too.
func TestEmptyWays(t *testing.T) {
	for _, sizes := range [][]int{{5, 4, 0, 0, 6, 3}, {5, 0, 4, 0, 6, 0}} {
		w := newWorld(t, 1, sizes, anywhere)
		s := newSetup(deep("gcnii", 3), 2, 3, 6)
		s.noDrop = true
		j := w.start(t, s)
		got, _ := j.epoch(t, 1)
		_, want := w.whole(t, s, 1, w.weights(j.model))
		if off := math.Abs(j.plain() - want/float64(w.learnt)); off > 1e-12 {
			t.Errorf("shards of %d: the loss is %g off", sizes, off)
		}
		s.stages, s.nodes = 1, 1
		if alone, _ := w.start(t, s).epoch(t, 1); !slices.Equal(got, alone) {
			t.Errorf("shards of %d: one node has another gradient", sizes)
		}
	}
}
