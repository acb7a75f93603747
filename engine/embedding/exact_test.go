package embedding_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Gradients of models that read learnt rows are those of one node, in float64, whether all nodes have
// all rows or owners and one more node each. Rows have single precision: they are added up in an order
// that does not depend on nodes, and are the same bits.
func TestGradientsAreThoseOfOneNode(t *testing.T) {
	bare := enginetest.Bare(t, 90)
	typed := enginetest.Cut(t, enginetest.Typed(bothWays...), 5, "")
	for _, c := range []struct {
		model, kind string
		shards      []*graph.Shard
	}{
		{"gcn", "class", bare}, {"sage", "class", bare}, {"gat", "class", bare}, {"sage", "link", bare},
		{"rgcn", "class", typed}, {"hetero:sage", "class", typed}, {"sage", "class", typed},
	} {
		r := traintest.ExactRecipe(c.model)
		r.Features, r.Embeddings, r.Sharing.Deterministic = "none", 5, true
		places := []string{recipe.AtAll, recipe.AtOwners}
		if c.shards[0].Features > 0 {
			r.Bare, places = []int{0}, places[:1]
		}
		if c.model == "rgcn" || c.model == "hetero:sage" {
			r.Model.Tell(4, "0,0,1,1")
		}
		if c.kind == "link" {
			r.Learn(task.Named(c.kind))
			r.Links.Width, r.Links.Negatives = 3, 2
		}
		o := traintest.Wide(train.Options{Threads: 1})
		want := traintest.Started(t, r, c.shards, o)
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				r.Sharing.Deterministic = true
				for _, r.EmbeddingsAt = range places {
					m := traintest.NewMesh(nodes, traintest.Uneven(len(c.shards), nodes))
					all := m.Start(t, r, c.shards, o)
					name := fmt.Sprintf("%s of %s, rows at %s, on %d nodes by %s", c.kind, c.model, r.EmbeddingsAt, nodes, how)
					traintest.Alike(t, name, m, all, want, 1e-10)
					for node, l := range all {
						if r.EmbeddingsAt == recipe.AtAll && !slices.Equal(l.Rows.Numbers(), want.Rows.Numbers()) {
							t.Errorf("%s: node %d has other rows", name, node)
						}
					}
				}
			}
		}
	}
}
