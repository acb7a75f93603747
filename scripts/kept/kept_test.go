package kept

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type run struct {
	Name string `json:"name"`
}

// What was added is there when the file is read again, but for a line that was cut off: the next one
// takes its place.
func TestItemsAreKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "runs.jsonl")
	add := func(want string, items ...string) {
		t.Helper()
		k, err := Load[run](name)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			if err := k.Add(run{item}); err != nil {
				t.Fatal(err)
			}
		}
		if k, err = Load[run](name); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, item := range k.Items {
			got += item.Name
		}
		if got != want {
			t.Errorf("kept are %q, want %q", got, want)
		}
	}
	add("")
	add("ab", "a", "b")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, slices.Concat(whole, []byte(`{"name":"c`)), 0o600); err != nil {
		t.Fatal(err)
	}
	add("abd", "d")
	if err := os.WriteFile(name, []byte("no run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load[run](name); err == nil || !strings.Contains(err.Error(), "runs.jsonl") {
		t.Errorf("a damaged file: %v", err)
	}
}
