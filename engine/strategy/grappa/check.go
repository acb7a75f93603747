package grappa

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// checkIsolation returns an error if the recipe can't be trained in isolated groups.
func checkIsolation(r *recipe.Recipe, about dataset.About) error {
	settings := Of(&r.Sharing)
	if err := settings.checkPairs(r); err != nil {
		return err
	}
	switch {
	case r.EmbeddingsAt == recipe.AtOwners:
		return fmt.Errorf("{train.embeddings_at} is %s, who are asked for rows in each step, and groups of grappa train in isolation: leave it out, or choose another {strategy}", recipe.AtOwners)
	case r.Embeddings > 0 && settings.Average > 1:
		return fmt.Errorf("grappa.average_every is %d, and {train.embeddings} learns rows of vertices, which are updated in each step: leave it out", settings.Average)
	}
	if r.Embeddings > 0 && settings.Phases > 1 {
		return fmt.Errorf("{grappa.phases} is %d, and rows of vertices that {train.embeddings} learns are read all at once, when the step before has updated them: leave one of the two out", settings.Phases)
	}
	if settings.Switch == onPlateau && r.Links == nil && about.Splits[r.Split].Val == 0 {
		return fmt.Errorf("{grappa.switch}=plateau needs validation vertices to compare epochs by, and split %d has none: leave it out, or choose another {split}", r.Split)
	}
	return CheckModel(&settings, r.Model)
}

// checkPairs returns an error if settings of grappa make no sense where pairs are learnt.
func (s *Settings) checkPairs(r *recipe.Recipe) error {
	switch {
	case r.Links == nil:
	case s.weighs():
		return fmt.Errorf("grappa.correction=%s weighs the losses of vertices by the neighbours that their groups see, and a pair of {task} link has two vertices: choose %s or %s, or leave it out", s.Correction, CorrectNone, CorrectMessage)
	case s.Loss == groupLoss:
		return fmt.Errorf("grappa.loss=%s weighs groups by their vertices, and {task} link learns pairs: leave it out", groupLoss)
	case s.Average > 1:
		return fmt.Errorf("grappa.average_every=%d: {task} link adds up gradients in each step: leave it out", s.Average)
	case s.Switch == onPlateau && r.Links.Split[1] == 0:
		return errors.New("{grappa.switch}=plateau needs validation edges to compare epochs by, and {edge-split} leaves none: leave it out, or give a second share above 0")
	}
	return nil
}
