package pipe

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
)

// Blocks and histories in files come to the same bits as in memory, and are no memory.
func TestFilesChangeNothing(t *testing.T) {
	dir := t.TempDir()
	if !shelf.Files(dir) {
		dir = "." // temporary files are memory here
	}
	w := newWorld(t, 3, sizes, anywhere)
	for _, model := range []string{"gcn", "gcnii", "resgcn"} {
		for _, histories := range []string{Made, Left} {
			for _, recompute := range []bool{true, false} {
				s := newSetup(deep(model, 3), 2, 2, 6)
				s.Recompute, s.Histories, s.Period, s.rate = recompute, histories, 2, 0.1
				want := w.learn(t, s, 4)
				s.dir = dir
				mustSame(t, fmt.Sprint(model, histories, recompute), w.learn(t, s, 4), want)
				for _, n := range w.start(t, s).nodes {
					if held := loadOf(n.Worker).held; held > 0 {
						t.Errorf("%s: a node holds %d bytes of blocks and histories", model, held)
					}
				}
			}
		}
	}
}

// What goes between stages takes no more memory the more chunks there are.
func TestStagesHoldFewPositions(t *testing.T) {
	w := newWorld(t, 3, []int{48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48}, anywhere)
	between := func(chunks int) (most int) {
		s := newSetup(deep("gcn", 3), 3, 1, chunks)
		s.Recompute = false
		for _, n := range w.start(t, s).nodes {
			most = max(most, loadOf(n.Worker).boundary())
		}
		return most
	}
	if few, many := between(3), between(12); many > few/2 {
		t.Errorf("3 chunks take %d bytes between stages, and 12 take %d", few, many)
	}
}
