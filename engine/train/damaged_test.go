package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A checkpoint of a later version, or one for which there is no memory or permission, is not
// damaged: the run does not go back behind it.
func TestWhatIsNoDamage(t *testing.T) {
	shards := traintest.Communities(t, 400)
	r := traintest.Short("gcn")
	r.Epochs = 1
	dir := checkpointed(t, r, shards)
	path := filepath.Join(dir, train.CheckpointFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(older(t, whole), []byte("hopmesh-checkpoint/2"), []byte("hopmesh-checkpoint/9"), 1)
	before := filepath.Join(dir, "before.safetensors")
	if err := errors.Join(os.WriteFile(before, whole, 0o600), os.WriteFile(path, later, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = train.Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All, Dir: dir, Dataset: "d", Resume: true, Damaged: func(err error, _ bool) { t.Error(err) }})
	if err == nil || !strings.Contains(err.Error(), "its format is") || errors.Is(err, checkpoint.ErrDamaged) {
		t.Error(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, later) {
		t.Errorf("it is not there any more: %v", err)
	}
	if err := checkpoint.Damage(fmt.Errorf("map it: %w", syscall.EMFILE)); errors.Is(err, checkpoint.ErrDamaged) {
		t.Error(err)
	}
	if err := checkpoint.Damage(fmt.Errorf("read it: %w", syscall.EIO)); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Error(err)
	}
}
