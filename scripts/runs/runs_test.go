package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
)

func TestFinishedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	k, err := Load(file)
	if err != nil || len(k.runs) != 0 {
		t.Fatalf("nothing was kept yet: %v, %v", k.runs, err)
	}
	r := train.DefaultRecipe("gcn")
	id, err := Digest(r)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		if err := k.Add(Run{Row: "cora/GCN", Recipe: id, Seed: seed, Commit: "abc", Test: 80 + float64(seed)}); err != nil {
			t.Fatal(err)
		}
	}
	if k, err = Load(file); err != nil {
		t.Fatal(err)
	}
	if got := k.Of("cora/GCN", id, 0); len(got) != 3 || got[2].Test != 82 {
		t.Errorf("read back %v", got)
	}
	r.Rate *= 2
	other, err := Digest(r)
	if err != nil || len(k.Of("cora/GCN", other, 0)) != 0 {
		t.Errorf("runs of another recipe count: %v", err)
	}
	r.Seed++
	if same, err := Digest(r); err != nil || same != other {
		t.Errorf("a seed makes another recipe: %v", err)
	}
	if err := os.WriteFile(file, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestSpread(t *testing.T) {
	if mean, deviation := Spread([]float64{1, 3}); mean != 2 || deviation*deviation < 1.99 || deviation*deviation > 2.01 {
		t.Errorf("%v ± %v", mean, deviation)
	}
}
