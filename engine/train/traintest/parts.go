package traintest

import (
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// PartsOfRows returns the checkpoint of one of three nodes of a job that was interrupted: it has the
// learnt rows of some vertices, and others have the rest.
func PartsOfRows(t testing.TB) (path string) {
	t.Helper()
	r := ExactRecipe("gcn")
	r.Features, r.Embeddings, r.EmbeddingsAt, r.Sharing = "none", 7, recipe.AtOwners, strategy.Given("leap")
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
	m := NewMesh(3, []int{0, 1, 2, 0, 1})
	if err := m.Interrupt(t, r, enginetest.Bare(t, 600), o, folders, func(q peer.Query) bool { return q.Epoch == 3 && q.Step == 1 }); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folders[0], train.CheckpointFile)
}
