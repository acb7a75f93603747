package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A checkpoint of some learnt rows is not damaged: a job can go on from it. One that was cut off is.
func TestCheckpointsThatAreDamaged(t *testing.T) {
	path := traintest.PartsOfRows(t)
	folder := filepath.Dir(path)
	if err := CheckModel(path); !errors.Is(err, trained.ErrInParts) {
		t.Fatalf("a checkpoint in parts: %v", err)
	}
	if damaged(folder) {
		t.Error("a checkpoint in parts counts as damaged")
	}
	if damaged(t.TempDir()) {
		t.Error("no checkpoint counts as damaged")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(folder, train.CheckpointFile), info.Size()/2); err != nil {
		t.Fatal(err)
	}
	if !damaged(folder) {
		t.Error("half of a checkpoint does not count as damaged")
	}
}
