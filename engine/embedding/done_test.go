package embedding_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A node that can't keep its rows when the job is done still gives them to those that write the model.
func TestANodeCanNotKeepItsRows(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Epochs, r.Sharing, r.EmbeddingsAt = 1, strategy.Given("leap"), recipe.AtOwners
	for full := range 4 {
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
		folders[full] = filepath.Join(folders[full], "file")
		if err := os.WriteFile(folders[full], nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _, err := traintest.NewMesh(4, []int{0, 1, 2, 3, 1}).Run(ctx, r, shards, o, func(node int) string { return folders[node] })
		cancel()
		if err != nil {
			t.Errorf("node %d can't write: %v", full, err)
		}
		for node := range min(3, len(folders)) {
			w, err := trained.ReadWeighed(filepath.Join(folders[node], train.CheckpointFile), trained.BestModel)
			if (err != nil) != (node == full) {
				t.Errorf("node %d can't write, and node %d: %v", full, node, err)
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil && node != full {
				t.Error(err)
			}
		}
	}
}

// A job that ends before its first nodes have its whole model has it when it goes on, even if each node has
// room for all rows by then.
func TestAModelIsWholeInTheEnd(t *testing.T) {
	shards := enginetest.Bare(t, 600)
	r := learning("gcn")
	r.Embeddings, r.Epochs, r.Batch, r.Fanouts, r.Sharing = 1024, 1, 10, []int{2, 2}, strategy.Given("leap")
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Resume: true, Memory: budget.Program + 18<<20}
	o.Measure = func() budget.Memory { return budget.Memory{Free: 1 << 30, Machine: 1 << 30} }
	m := traintest.NewMesh(3, []int{0, 1, 2, 0, 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Epoch == 3 && uint8(q.Part>>24) == exchange.LaneLearnt {
			cancel(traintest.ErrEnough)
			return traintest.ErrEnough
		}
		return nil
	}
	folder := func(node int) string { return folders[node] }
	_, _, err := m.Run(ctx, r, shards, o, folder)
	if _, full := errors.AsType[*checkpoint.Unsaved](err); !errors.Is(err, traintest.ErrEnough) || full {
		t.Fatal(err)
	}
	path := filepath.Join(folders[0], train.CheckpointFile)
	if _, err := trained.ReadWeighed(path, trained.BestModel); !errors.Is(err, trained.ErrInParts) {
		t.Fatal(err)
	}
	o.Memory = 0
	if _, _, err := traintest.NewMesh(2, []int{0, 1, 1, 0, 1}).Run(t.Context(), r, shards, o, folder); err != nil {
		t.Fatal(err)
	}
	w, err := trained.ReadWeighed(path, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
