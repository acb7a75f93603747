package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
)

func TestFinishedRunsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	k, err := Load(file)
	if err != nil || len(k.Items) != 0 {
		t.Fatalf("nothing was kept yet: %v, %v", k.Items, err)
	}
	r := Row{Name: "cora/GCN", Recipe: recipe.DefaultRecipe("gcn"), Seeds: 2}
	id, err := digest(r.Recipe)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		if err := k.Add(Run{Row: "cora/GCN", Recipe: id, Seed: 2 - seed, Commit: "abc", Test: 82 - float64(seed)}); err != nil {
			t.Fatal(err)
		}
	}
	if k, err = Load(file); err != nil {
		t.Fatal(err)
	}
	if m, err := k.Of(r); err != nil || m.Done != 2 || m.Runs[1].Test != 81 || m.Test != 80.5 || len(m.Commits) != 1 {
		t.Errorf("read back %+v, %v", m, err)
	}
	other := r
	other.Recipe.Seed++
	if m, err := k.Of(other); err != nil || m.Done != 2 {
		t.Errorf("a seed makes another recipe: %+v, %v", m, err)
	}
	other.Recipe.Rate *= 2
	if m, err := k.Of(other); err != nil || m.Done != 0 {
		t.Errorf("runs of another recipe count: %+v, %v", m, err)
	}
	other = r
	other.Nodes = 3
	if m, err := k.Of(other); err != nil || m.Done != 0 {
		t.Errorf("runs of one node count for three: %+v, %v", m, err)
	}
	if err := os.WriteFile(file, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
	}
}
