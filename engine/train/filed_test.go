package train_test

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Edges of other nodes that lie in files are no memory of a job. Where the disk has no room for
// them the node asks others for edges, and says so. Either learns the same, whether edges are
// brought at once or once the job is known to fit.
func TestEdgesThatLieInFiles(t *testing.T) {
	for _, c := range []struct {
		vertices, batch int
		memory          uint64
	}{{6000, 1500, 0}, {64000, 8000, budget.Program + 80<<20}} {
		shards := dense(t, c.vertices)
		edges := uint64(0)
		for i, owner := range traintest.Uneven(len(shards), 3) {
			if owner > 0 {
				edges += 4 * uint64(len(shards[i].Indices))
			}
		}
		run := func(cache *replica.Cache) (said train.Forecast, hash string) {
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			errs := traintest.Ends(t, m, shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				*r = traintest.Small("sage")
				r.Batch, r.Epochs, r.Fanouts = c.batch, 1, []int{10, 10}
				r.Sharing = strategy.Given("leap")
				r.Sharing.Deterministic = true
				o.Threads, o.Strategies = 2, strategies.All
				if node == 0 {
					o.Memory, o.Replicas = c.memory, cache
					o.Announce = func(f train.Forecast) { said = f }
					o.Report = func(e trained.Epoch) { hash = e.Hash }
				}
			})
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			return said, hash
		}
		filed, full := replica.NewCache(t.TempDir()), replica.NewCache(t.TempDir())
		full.Free = func(string) (uint64, bool, error) { return 1000, false, nil }
		inMemory, want := run(nil)
		inFiles, hash := run(filed)
		if hash != want || len(inFiles.FellBack) > 0 || inFiles.Arenas+edges*9/10 > inMemory.Arenas {
			t.Errorf("%d vertices: with edges of %d bytes in files a job takes %d bytes and not %d, says %q and learns %s, not %s", c.vertices, edges, inFiles.Arenas, inMemory.Arenas, inFiles.FellBack, hash, want)
		}
		asking, hash := run(full)
		if hash != want || len(asking.FellBack) != 1 || !strings.Contains(asking.FellBack[0], "has no room, so this node asks others for edges") {
			t.Errorf("%d vertices: on a full disk a job says %q and learns %s, not %s", c.vertices, asking.FellBack, hash, want)
		}
		for _, n := range asking.Notes {
			if strings.Contains(n, "take more memory than a node has") {
				t.Errorf("%d vertices: on a full disk a job says %q", c.vertices, n)
			}
		}
		for _, of := range []*replica.Cache{filed, full} {
			if err := of.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
