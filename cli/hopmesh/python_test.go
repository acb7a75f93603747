package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python is one that has the safetensors package: the one that make test has made,
// or the user's own.
func python(t *testing.T) string {
	if own := os.Getenv("SAFETENSORS_PYTHON"); own != "" {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", "import safetensors.numpy").CombinedOutput(); err != nil {
		t.Skipf("no python3 with its safetensors package: %v %s", err, out)
	}
	return "python3"
}

// TestPythonComputesTheSame takes models home, as a user of Python would, and
// computes what they say of Cora in NumPy.
func TestPythonComputesTheSame(t *testing.T) {
	python := python(t)
	n := meshOf(t, 1)[0]
	var made shownDataset
	n.must(&made, "dataset", "import", "cora", coraFile)
	folders, err := filepath.Glob(filepath.Join(n.dir, "datasets", "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("the shards are in %v, %v", folders, err)
	}
	for name, args := range map[string][]string{
		"gcn":    {"--model", "gcn", "--hidden", "16"},
		"sage":   {"--model", "sage", "--layers", "3", "--norm", "layer", "--residual", "--set", "model.head=linear"},
		"gat":    {"--model", "gat", "--hidden", "8", "--heads", "4", "--normalize-features", "none"},
		"resgcn": {"--model", "resgcn", "--layers", "3", "--hidden", "16"},
	} {
		t.Run(name, func(t *testing.T) {
			var job struct {
				ID string `json:"id"`
			}
			n.must(&job, append([]string{"train", "start", "--dataset", "cora", "--epochs", "30"}, args...)...)
			until(t, "the job is done", func() bool {
				var shown struct {
					State, Error string
				}
				n.must(&shown, "train", "show", job.ID)
				if shown.State == "failed" {
					t.Fatal(shown.Error)
				}
				return shown.State == "done"
			})
			dir := t.TempDir()
			model, predicted := filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "out.npy")
			var done json.RawMessage
			n.must(&done, "export", job.ID, "--out", model)
			n.must(&done, "predict", job.ID, "--out", predicted)
			cmd := exec.CommandContext(t.Context(), python, "testdata/forward.py", model, folders[0], predicted)
			var diag strings.Builder
			cmd.Stderr = &diag
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, diag.String())
			}
			var said struct{ Difference, Largest float64 }
			if err := json.Unmarshal(out, &said); err != nil {
				t.Fatalf("Python printed %q: %v", out, err)
			}
			if !(said.Difference <= 1e-4*max(1, said.Largest)) || said.Largest == 0 {
				t.Errorf("NumPy differs by %g, of numbers up to %g", said.Difference, said.Largest)
			}
		})
	}
}
