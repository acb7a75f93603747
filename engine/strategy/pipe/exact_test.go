package pipe

import (
	"fmt"
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
			{1, 4, 4, 2}, {2, 1, 1, 5},
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
