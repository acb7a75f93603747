//go:build long

package jobs

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Predictions for a graph whose rows take several times of the memory that may be used take
// no more than that.
func TestPredictionsOfALargeGraphTakeLittleMemory(t *testing.T) {
	const bound, vertices, columns = 84 << 20, 1_000_000, 64
	made := func(vertices int) (shards []*graph.Shard) {
		src, err := generate.New(generate.Options{
			Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(3 * vertices), Features: 16, Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		if vertices < 10_000 {
			return enginetest.Cut(t, src, 2, "")
		}
		dir := filepath.Join(t.TempDir(), "shards")
		m, err := build.Run(t.Context(), src, build.Options{Dir: dir, Shards: 8, Seed: 1, Partitioner: "random"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Shards {
			s, err := graph.OpenShard(filepath.Join(dir, graph.ShardFile(i)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			shards = append(shards, s)
		}
		return shards
	}
	// A model predicts for any graph with as many features.
	r := recipe.DefaultRecipe("gcn")
	r.Epochs, r.Model.Hidden = 1, columns
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, made(2000), train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	shards := made(vertices)
	for _, format := range []string{".npy", ".parquet"} {
		p := Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: shards, Folder: t.TempDir(), Format: format, Embeddings: true, Memory: bound}
		runtime.GC()
		debug.FreeOSMemory()
		// As a daemon does, within the bound, of which the program has a part already.
		widen := budget.Narrow(int64(budget.Own()) / 2)
		peak := budget.WatchPeak(5 * time.Millisecond)
		var n counted
		if err := Predict(t.Context(), p, &n); err != nil {
			t.Fatal(err)
		}
		taken := peak.Stop()
		widen()
		t.Logf("%s: %s of predictions, of %s it took %s", format, budget.Format(uint64(n)), budget.Format(bound), budget.Format(taken))
		if n < 4*vertices*columns || taken > bound-budget.Program {
			t.Errorf("%s: %s were written, and %s of memory taken", format, budget.Format(uint64(n)), budget.Format(taken))
		}
		if left, err := os.ReadDir(p.Folder); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// counted counts what is written.
type counted uint64

func (c *counted) Write(b []byte) (int, error) {
	*c += counted(len(b))
	return len(b), nil
}
