package recipe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

func TestSettingsOfSharing(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	if err := errors.Join(r.Set("leap.mode", "migrate", strategies.All.Declared()), r.Set("topology", "sharded", strategies.All.Declared())); err != nil || r.Sharing.Values["leap.mode"] != "migrate" || r.Sharing.Topology() != "sharded" {
		t.Errorf("%+v, %v", r.Sharing, err)
	}
	if err := r.Set("leap.mode", "fly", strategies.All.Declared()); err == nil || !strings.Contains(err.Error(), "{leap.mode}=fly: it is one of") {
		t.Error(err)
	}
	for _, k := range strategies.All.Declared().Keys() {
		if !slices.ContainsFunc(strategies.Settings(), func(o nn.Option) bool { return o.Key == k.Key && o.Applies == k.Applies && o.Help == k.Help }) {
			t.Errorf("%s is not listed", k.Key)
		}
	}
	r.Sharing.Strategy = "cleverer"
	if err := r.Check(dataset.Describe(traintest.Communities(t, 600)), strategies.All); err == nil || !strings.Contains(err.Error(), "cleverer") {
		t.Error(err)
	}
}

// How nodes share a job may change while it goes on, but not how gradients add up.
func TestSharingMayChangeWhileAJobGoesOn(t *testing.T) {
	was, now := traintest.Small("gcn"), traintest.Small("gcn")
	now.Sharing = strategy.Given("leap", "topology=sharded", "leap.mode=migrate", "leap.merge=2")
	if err := recipe.SameRecipe(now, was, strategies.All.Declared().Same); err != nil {
		t.Error(err)
	}
	now.Sharing.Deterministic = true
	if err := recipe.SameRecipe(now, was, strategies.All.Declared().Same); err == nil || !strings.Contains(err.Error(), "another sharing") {
		t.Error(err)
	}
}

// What a pipeline has learnt depends on what it saw of other chunks, and not on where
// its stages are.
func TestPipelinesMayNotChangeWhatTheyLearn(t *testing.T) {
	recipeOf := func(name string, changed ...string) recipe.Recipe {
		r := traintest.Small("gcn")
		r.Sharing = strategy.Given(name, "pipe.stages=2", "pipe.ways=2", "pipe.chunks=4", "pipe.period=5").With(changed...)
		return r
	}
	if err := recipe.SameRecipe(recipeOf("pipe", "pipe.stages=", "pipe.recompute=off"), recipeOf("pipe"), strategies.All.Declared().Same); err != nil {
		t.Error(err)
	}
	for name, now := range map[string]recipe.Recipe{
		"period":     recipeOf("pipe", "pipe.period=6"),
		"chunks":     recipeOf("pipe", "pipe.chunks=6"),
		"ways":       recipeOf("pipe", "pipe.ways=1"),
		"halo":       recipeOf("pipe", "pipe.halo=skip"),
		"shuffle":    recipeOf("pipe", "pipe.shuffle=off"),
		"compensate": recipeOf("pipe", "pipe.compensate=off"),
		"histories":  recipeOf("pipe", "pipe.histories=left"),
		"gradients":  recipeOf("pipe", "pipe.gradients=kept"),
		"graph":      recipeOf("graph"),
		"leap":       recipeOf("leap"),
	} {
		if err := recipe.SameRecipe(now, recipeOf("pipe"), strategies.All.Declared().Same); err == nil || !strings.Contains(err.Error(), "another sharing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
