package traintest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Interrupt runs all nodes until one asks another what at recognises, which ends them. Nodes keep their
// files in folders.
func (m *Mesh) Interrupt(t testing.TB, r recipe.Recipe, shards []*graph.Shard, o train.Options, folders []string, at func(q peer.Query) bool) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if at(q) {
			cancel(ErrEnough)
		}
		return nil
	}
	_, _, err := m.Run(ctx, r, shards, o, func(node int) string { return folders[node] })
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return errors.Join(errors.New("it was not interrupted"), err)
}

// PartsOfRows returns the checkpoint of one of three nodes of a job that was interrupted: it has the
// learnt rows of some vertices, and others have the rest.
func PartsOfRows(t testing.TB) (path string) {
	t.Helper()
	r := ExactRecipe("gcn")
	r.Features, r.Embeddings, r.EmbeddingsAt, r.Sharing = "none", 7, recipe.AtOwners, strategy.Given(leap.Name)
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	o := train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All}
	m := NewMesh(3, []int{0, 1, 2, 0, 1})
	if err := m.Interrupt(t, r, enginetest.Bare(t, 600), o, folders, func(q peer.Query) bool { return q.Epoch == 3 && q.Step == 1 }); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folders[0], train.CheckpointFile)
}
