package train_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

func TestSettingsOfSharing(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	if err := errors.Join(r.Set("leap.mode", "migrate"), r.Set("topology", "sharded")); err != nil || r.Sharing.Leap.Mode != "migrate" || r.Sharing.Topology != "sharded" {
		t.Errorf("%+v, %v", r.Sharing, err)
	}
	if err := r.Set("leap.mode", "fly"); err == nil || !strings.Contains(err.Error(), "{leap.mode}=fly: it is one of") {
		t.Error(err)
	}
	for _, k := range strategy.Keys() {
		if !slices.ContainsFunc(recipe.Settings(), func(o nn.Option) bool { return o.Key == k.Key && o.Applies == k.Applies && o.Help == k.Help }) {
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
	now.Sharing = strategy.Settings{Strategy: strategy.Leap, Topology: "sharded", Leap: strategy.LeapSettings{Mode: "migrate", Merge: "2"}}
	if err := recipe.SameRecipe(now, was, strategies.All.Same); err != nil {
		t.Error(err)
	}
	now.Sharing.Deterministic = true
	if err := recipe.SameRecipe(now, was, strategies.All.Same); err == nil || !strings.Contains(err.Error(), "another sharing") {
		t.Error(err)
	}
}

// What a pipeline has learnt depends on what it saw of other chunks, and not on where
// its stages are.
func TestPipelinesMayNotChangeWhatTheyLearn(t *testing.T) {
	recipeOf := func(s string, p strategy.PipeSettings) recipe.Recipe {
		r := traintest.Small("gcn")
		r.Sharing = strategy.Settings{Strategy: s, Pipe: p}
		return r
	}
	was := strategy.PipeSettings{Stages: 2, Ways: 2, Chunks: 4, Period: 5}
	with := func(change func(*strategy.PipeSettings)) strategy.PipeSettings {
		p := was
		change(&p)
		return p
	}
	if err := recipe.SameRecipe(recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Stages, p.Keep = 0, true })), recipeOf(strategy.Pipe, was), strategies.All.Same); err != nil {
		t.Error(err)
	}
	for name, now := range map[string]recipe.Recipe{
		"period":     recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Period = 6 })),
		"chunks":     recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Chunks = 6 })),
		"ways":       recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Ways = 1 })),
		"halo":       recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Halo = strategy.RowsSkip })),
		"shuffle":    recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Ordered = true })),
		"compensate": recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Single = true })),
		"histories":  recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Histories = strategy.HistoriesLeft })),
		"gradients":  recipeOf(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.KeepGradients = true })),
		"graph":      recipeOf(strategy.Graph, was),
		"leap":       recipeOf(strategy.Leap, was),
	} {
		if err := recipe.SameRecipe(now, recipeOf(strategy.Pipe, was), strategies.All.Same); err == nil || !strings.Contains(err.Error(), "another sharing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTold reads what nodes tell each other, which may be anything.
func FuzzTold(f *testing.F) {
	for _, v := range []any{&train.Share{Seconds: 1, Rows: epoch.Rows{Local: 5}}, &train.Share{Seconds: math.NaN()}} {
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h train.Share
		if err := h.Read(b); err == nil && (h.Seconds < 0 || math.IsNaN(h.Seconds) || len(b) != binary.Size(&h)) {
			t.Errorf("%+v", h)
		}
	})
}
