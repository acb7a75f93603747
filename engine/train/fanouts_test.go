package train_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// TestFanoutsByRelationOnSeveralNodes compares nodes that have all edges, or ask others, with one, to
// the last bit.
func TestFanoutsByRelationOnSeveralNodes(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Typed(bothWays...), 6)
	for _, model := range []string{"rgcn", "hetero:sage", "hgt"} {
		r := typedRecipe(model, 4)
		r.Epochs, r.Sharing.Deterministic = 2, true
		if err := r.FanEach([][]int{{2, 1}, {1, 2}, {5, 3}, {2, 4}}); err != nil {
			t.Fatal(err)
		}
		_, epochs := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
		want := traintest.Hashes(epochs)
		all := r
		all.Each = nil
		if _, epochs := traintest.MustRun(t, all, shards, train.Options{Threads: 1}); traintest.Hashes(epochs) == want {
			t.Errorf("%s learns the same by fan-outs over all relations", model)
		}
		for _, by := range []string{"centric", "leap"} {
			for name, topology := range map[string]string{"all edges": strategy.Replicated, "own edges": strategy.Sharded} {
				r.Sharing = strategy.Given(by, "topology="+topology)
				r.Sharing.Deterministic = true
				_, of := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
				if got := traintest.Hashes(of[0]); got != want {
					t.Errorf("%s, %s, %s: three nodes learn\n%s, and one\n%s", model, by, name, got, want)
				}
			}
		}
	}
}
