package train_test

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// peak calls do, and returns how much more anonymous memory this process held meanwhile
// than before.
func peak(do func()) uint64 {
	debug.FreeOSMemory()
	before, most := budget.Resident(), uint64(0)
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			most = max(most, budget.Resident())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-watched
	return most - min(most, before)
}

// dense is a graph of so many vertices, with 20 edges each.
func dense(t testing.TB, vertices int) []*graph.Shard {
	t.Helper()
	src, err := generate.New(generate.Options{Kind: "rmat", Vertices: uint32(vertices), Edges: uint64(20 * vertices), Features: 16, Classes: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Cut(t, src, 4, "random")
}

// refused fails unless a job is refused soon, and takes little memory meanwhile.
func refused(t *testing.T, r recipe.Recipe, shards []*graph.Shard, memory uint64) {
	t.Helper()
	var err error
	start := time.Now()
	took := peak(func() {
		_, err = train.Run(t.Context(), r, shards, train.Options{Memory: memory, Threads: 2, Strategies: strategies.All})
	})
	lasted := time.Since(start)
	if _, short := errors.AsType[*budget.Short](err); !short || !strings.Contains(err.Error(), "take a smaller") {
		t.Errorf("%v", err)
	}
	if took > 64<<20 || lasted > refusal {
		t.Errorf("a refusal takes %s and %v", budget.Format(took), lasted)
	}
	t.Logf("%s, %v: %v", budget.Format(took), lasted, err)
}

// refusal bounds how long one takes: under a second where nothing else runs, and never as long as
// to draw whole batches, which takes minutes.
const refusal = 10 * time.Second

// What does not fit is refused before it is taken, however large it is.
func TestARefusalTakesNothing(t *testing.T) {
	shards := dense(t, 30_000)
	for _, model := range []string{"gcn", "sage", "gcnii"} {
		r := traintest.Small(model)
		r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts = 1000, 16, 0, nil
		refused(t, r, shards, 100<<20)
	}
	r := traintest.Small("sage")
	r.Model.Layers, r.Fanouts, r.Batch, r.Model.Hidden = 3, []int{15, 10, 5}, 8000, 256
	refused(t, r, shards, 150<<20)
}

// Nor do the nodes of a mesh take what one of them has no room for, whatever the strategy
// and wherever the edges are.
func TestARefusalTakesNothingOnAnyNode(t *testing.T) {
	shards := dense(t, 10_000)
	for _, given := range [][]string{{"centric"}, {"leap"}, {"leap", "topology=sharded"}, {"p3"}, {"p3", "topology=sharded"}, {"auto"}, {"local"}, {"grappa"}} {
		r := traintest.Small("sage")
		r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts = 1000, 16, 0, nil
		if given[0] == "grappa" || given[0] == "local" {
			r.Batch = 1 << 20
		}
		r.Sharing = strategy.Given(given[0], given[1:]...)
		var errs []error
		start := time.Now()
		took := peak(func() {
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			errs = traintest.Ends(t, m, shards, func(_ int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				*to, o.Memory, o.Strategies = r, 80<<20, strategies.All
			})
		})
		for node, err := range errs {
			if _, short := errors.AsType[*budget.Short](err); !short || !train.Together(err) {
				t.Errorf("%v: node %d: %v", given, node, err)
			}
		}
		if took > 3*64<<20 || time.Since(start) > refusal {
			t.Errorf("%v: a refusal takes %s and %v", given, budget.Format(took), time.Since(start))
		}
		t.Logf("%v: %s, %v: %v", given, budget.Format(took), time.Since(start), errs[0])
	}
}
