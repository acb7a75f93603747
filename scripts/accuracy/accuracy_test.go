package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/graphs"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

func TestCoraReachesItsBar(t *testing.T) {
	reachBars(t, map[string]int{"cora/GCN": 2})
}

// reachBars trains rows of the table with so many seeds, fewer than the table has.
func reachBars(t *testing.T, seeds map[string]int) {
	t.Helper()
	open := map[string]*graphs.Graph{}
	t.Cleanup(func() {
		for _, g := range open {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	done := 0
	for _, r := range rows() {
		n := seeds[r.id()]
		if n == 0 {
			continue
		}
		done++
		if open[r.graph] == nil {
			file := "../../engine/graph/read/testdata/" + r.graph + ".npz"
			if r.graph == "cora" {
				file = "../../engine/graph/cora/cora.npz"
			}
			g, err := graphs.Read(t.Context(), file, filepath.Join(t.TempDir(), r.graph))
			if err != nil {
				t.Fatal(err)
			}
			open[r.graph] = g
		}
		var tests []float64
		for seed := range uint64(n) {
			r.Seed = seed
			result, err := train.Run(t.Context(), r.Recipe, open[r.graph].Shards, train.Options{Strategies: strategies.All})
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, 100*result.Best.Scores.Test.Accuracy)
		}
		// Fewer seeds than the bar was measured with: a point of room for chance.
		if mean, _ := stats.Spread(tests); mean < r.bar-tolerance-1 {
			t.Errorf("%s: %.2f of %v, with a bar of %.1f", r.id(), mean, tests, r.bar)
		}
	}
	if done != len(seeds) {
		t.Errorf("%d of the rows %v exist", done, seeds)
	}
}

func TestNodesLearnAsWellAsOne(t *testing.T) {
	learnAsWell(t, 1, apart+1) // a point of room for chance
}

// learnAsWell trains a row on one node and on three, with so many seeds, whose means may be
// some points apart.
func learnAsWell(t *testing.T, seeds uint64, most float64) {
	t.Helper()
	r := rows()[0]
	g, err := graphs.Read(t.Context(), "../../engine/graph/cora/cora.npz", filepath.Join(t.TempDir(), r.graph))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	var tests [2][]float64
	for seed := range seeds {
		r.Seed = seed
		for i, nodes := range []int{1, 3} {
			result, err := runs.Share(t.Context(), r.Recipe, g.Shards, nodes)
			if err != nil {
				t.Fatal(err)
			}
			if shared := result.Last.Strategy == "leap"; shared != (nodes > 1) {
				t.Fatalf("on %d nodes the strategy is %q", nodes, result.Last.Strategy)
			}
			tests[i] = append(tests[i], 100*result.Best.Scores.Test.Accuracy)
		}
	}
	one, _ := stats.Spread(tests[0])
	many, _ := stats.Spread(tests[1])
	if math.Abs(one-many) > most {
		t.Errorf("one node comes to %v, three to %v", tests[0], tests[1])
	}
	if _, err := runs.Share(t.Context(), r.Recipe, g.Shards[:1], 3); err == nil || !strings.Contains(err.Error(), "too few for 3 nodes") {
		t.Errorf("one shard on three nodes: %v", err)
	}
}

func TestRowsAreAllDifferent(t *testing.T) {
	var ids []string
	for _, r := range rows() {
		ids = append(ids, r.id())
		if r.seeds < 3 || r.Epochs == 0 {
			t.Errorf("%s: %d seeds, %d epochs", r.id(), r.seeds, r.Epochs)
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != 23 {
		t.Errorf("%d rows, %d different: %v", len(ids), n, ids)
	}
}
