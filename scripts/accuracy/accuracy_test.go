package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

// TestQuickRowsReachTheirBars trains what takes a second or two a seed, with fewer
// seeds than the table has.
func TestQuickRowsReachTheirBars(t *testing.T) {
	seeds := map[string]int{
		"cora/GCN": 3, "cora/SAGE-mean": 3, "cora/GAT": 2, "citeseer/GCN": 3, "citeseer/SAGE-mean": 3, "citeseer/GAT": 2, "amazon_photo/quick GCN": 1,
	}
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
			result, err := train.Run(t.Context(), r.Recipe, open[r.graph].Shards, train.Options{})
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, 100*result.Best.Eval.Test.Accuracy)
		}
		// Fewer seeds than the bar was measured with: a point of room for chance.
		if mean, _ := spread(tests); mean < r.bar-tolerance-1 {
			t.Errorf("%s: %.2f of %v, with a bar of %.1f", r.id(), mean, tests, r.bar)
		}
	}
	if done != len(seeds) {
		t.Errorf("%d of the rows %v exist", done, seeds)
	}
}

// TestNodesLearnAsWellAsOne trains a row on one node and on three.
func TestNodesLearnAsWellAsOne(t *testing.T) {
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
	for seed := range uint64(3) {
		r.Seed = seed
		for i, nodes := range []int{1, 3} {
			result, err := share(t.Context(), r.Recipe, g.Shards, nodes)
			if err != nil {
				t.Fatal(err)
			}
			if shared := result.Last.Strategy == "leap"; shared != (nodes > 1) {
				t.Fatalf("on %d nodes the strategy is %q", nodes, result.Last.Strategy)
			}
			tests[i] = append(tests[i], 100*result.Best.Eval.Test.Accuracy)
		}
	}
	one, _ := spread(tests[0])
	many, _ := spread(tests[1])
	if math.Abs(one-many) > apart {
		t.Errorf("one node comes to %v, three to %v", tests[0], tests[1])
	}
	if _, err := share(t.Context(), r.Recipe, g.Shards[:1], 3); err == nil || !strings.Contains(err.Error(), "too few for 3 nodes") {
		t.Errorf("one shard on three nodes: %v", err)
	}
}

func TestFinishedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	k, err := load(file)
	if err != nil || len(k.runs) != 0 {
		t.Fatalf("nothing was kept yet: %v, %v", k.runs, err)
	}
	r := rows()[0]
	id, err := digest(r)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		if err := k.add(run{Row: r.id(), Recipe: id, Seed: seed, Commit: "abc", Test: 80 + float64(seed)}); err != nil {
			t.Fatal(err)
		}
	}
	if k, err = load(file); err != nil {
		t.Fatal(err)
	}
	if got := k.of(r.id(), id, 0); len(got) != 3 || got[2].Test != 82 {
		t.Errorf("read back %v", got)
	}
	r.Rate *= 2
	other, err := digest(r)
	if err != nil || len(k.of(r.id(), other, 0)) != 0 {
		t.Errorf("runs of another recipe count: %v", err)
	}
	r.Seed++
	if same, err := digest(r); err != nil || same != other {
		t.Errorf("a seed makes another recipe: %v", err)
	}
	if err := os.WriteFile(file, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(file); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
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
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != 21 {
		t.Errorf("%d rows, %d different: %v", len(ids), n, ids)
	}
}

func TestSpread(t *testing.T) {
	if mean, deviation := spread([]float64{1, 3}); mean != 2 || deviation*deviation < 1.99 || deviation*deviation > 2.01 {
		t.Errorf("%v ± %v", mean, deviation)
	}
}
