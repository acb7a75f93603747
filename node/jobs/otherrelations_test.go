package jobs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A model that has learnt the relation of one name says nothing of another one that has its number in
// another dataset: it is refused there, or finds the relation by its name.
func TestALearntRelationIsFoundByItsName(t *testing.T) {
	relations := []string{"wrote", enginetest.Back + "wrote"}
	src := enginetest.Typed(relations...)
	shards := enginetest.Cut(t, src, 3, "")
	r := recipe.DefaultRecipe("rgcn")
	r.Learn(task.Named("link"))
	if err := r.Set("link.relation", "wrote", strategies.All.Declared()); err != nil {
		t.Fatal(err)
	}
	if err := r.LearnRelation(src.Meta().Types); err != nil {
		t.Fatal(err)
	}
	r.Model.Tell(len(relations), src.Meta().Types.Ends())
	r.Epochs, r.Model.Layers, r.Links.Width, r.Batch, r.Fanouts = 1, 2, 6, 200, nil
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, train.CheckpointFile)
	for name, of := range map[string][]string{
		"its edges back have its number": {enginetest.Back + "wrote", "wrote"},
		"there is no such relation":      {"edited", enginetest.Back + "edited"},
	} {
		other := enginetest.Cut(t, enginetest.Typed(of...), 3, "")
		p := Prediction{Model: model, Shards: other, Folder: t.TempDir(), Format: ".csv"}
		if err := PredictPairs(t.Context(), p, Pairing{Top: 2}, new(strings.Builder)); err == nil {
			t.Errorf("%s: partners were found by the number alone", name)
		}
		if _, err := trained.Evaluate(t.Context(), model, other, trained.EvaluateOptions{Threads: 1, Dir: t.TempDir(), Split: trained.TrainedSplit}); err == nil {
			t.Errorf("%s: its edges were evaluated by the number alone", name)
		}
	}
}
