package backup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// A checkpoint of some learnt rows is in a backup, as nobody else may have them; half of one is not.
func TestCheckpointsThatAreBackedUp(t *testing.T) {
	whole, err := os.ReadFile(traintest.PartsOfRows(t))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	j := plan.Job{ID: "j1", Key: "a1", Nodes: []string{w.id.ID()}}
	path := filepath.Join(w.dir, jobs.FolderOf(j), train.CheckpointFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a part": whole, "half of one": whole[:len(whole)/2]} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		f, size, err := w.maker().checkpoint(j)
		if err != nil {
			t.Fatal(err)
		}
		if (f != nil) != (name == "a part") || f != nil && size != int64(len(whole)) {
			t.Errorf("%s: %v, %d bytes of %d", name, f, size, len(whole))
		}
		if f != nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
