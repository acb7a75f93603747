package pipe

import (
	"fmt"
	"testing"
)

// Who multiplies features changes the order in which one gradient is added up, and nothing
// else: products are of the epoch whoever reads them.
func TestProductsMadeOnce(t *testing.T) {
	for _, o := range []struct {
		histories string
		kept      bool
		period    int
		stages    int
		ways      int
	}{{Made, false, 3, 1, 1}, {Made, false, 1, 3, 1}, {Left, false, 2, 2, 2}, {Zeros, true, 2, 2, 1}, {Left, true, 2, 1, 3}} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v/%v", o, again), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 9, sizes, anywhere)
				s := newSetup(deep("gcn", 3), o.stages, o.ways, 6)
				s.rate, s.Recompute, s.Histories, s.Period = 0.1, again, o.histories, o.period
				if s.Kept = o.kept; s.Kept {
					s.Factor = 1
				}
				readers := w.start(t, s)
				s.split = true
				owners := w.start(t, s)
				if owners.model == readers.model || !owners.nodes[0].multiplies() || readers.nodes[0].multiplies() {
					t.Fatal("the first layer is not split")
				}
				for epoch := 1; epoch <= 5; epoch++ {
					want, _ := readers.epoch(t, epoch)
					got, _ := owners.epoch(t, epoch)
					mustNear(t, fmt.Sprintf("the gradient of epoch %d", epoch), got, want, 1e-9)
				}
			})
		}
	}
}
