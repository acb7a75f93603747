//go:build long

package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
)

// The best partners of 100,000 vertices are found in little memory, and are those that are found
// for some of them without a bound.
func TestPartnersOfALargeGraphTakeLittleMemory(t *testing.T) {
	const vertices, columns, top = 100_000, 32, 10
	const room = 40 << 20 // beside the program: all scores are 37 GiB
	made := func(vertices int) (shards []*graph.Shard) {
		src, err := generate.New(generate.Options{
			Kind: "sbm", Vertices: uint32(vertices), Edges: uint64(5 * vertices), Features: 16, Classes: 4, Communities: 8, Inside: 0.8, Homophily: 0.8, Seed: 3,
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
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	r.Epochs, r.Batch, r.Model.Hidden, r.Links.Width = 1, 512, 16, columns
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, made(2000), train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	p := Prediction{Model: filepath.Join(dir, train.CheckpointFile), Shards: made(vertices), Folder: t.TempDir(), Format: ".csv", Memory: budget.Program + room}
	runtime.GC()
	debug.FreeOSMemory()
	// As a daemon does, within the bound, of which the program has a part already.
	widen := budget.Narrow(int64(budget.Own()) / 2)
	peak := budget.WatchPeak(5 * time.Millisecond)
	start := time.Now()
	all, err := os.Create(filepath.Join(dir, "all.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(PredictPairs(t.Context(), p, Pairing{Top: top}, all), all.Close()); err != nil {
		t.Fatal(err)
	}
	taken := peak.Stop()
	widen()
	text, err := os.ReadFile(all.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	t.Logf("%d partners of %d vertices in %.1f s: beside the program's %s it took %s, of %s that it might", len(lines), vertices, time.Since(start).Seconds(), budget.Format(budget.Program), budget.Format(taken), budget.Format(room))
	if len(lines) != vertices*top || taken > room {
		t.Errorf("%d partners were found, and %s of memory taken", len(lines), budget.Format(taken))
	}
	p.Memory = 0
	var list string
	var want []string
	for v := 7; v < vertices; v += 9973 {
		list += fmt.Sprintln(v)
		want = append(want, lines[v*top:(v+1)*top]...)
	}
	var some bytes.Buffer
	if err := PredictPairs(t.Context(), p, Pairing{Top: top, Vertices: written(t, "some.csv", list)}, &some); err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSpace(some.String()), "\n")[1:]; !slices.Equal(got, want) {
		t.Errorf("without a bound they are others: %q, want %q", got, want)
	}
	if left, err := os.ReadDir(p.Folder); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
