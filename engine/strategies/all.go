// Package strategies lists the strategies that this program has. A strategy is a package
// and one line here: nodes train by this list, check recipes by it and let auto choose
// from it.
package strategies

import (
	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/local"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/outlook"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
	"github.com/hopmesh/hopmesh/engine/train"
)

// All are the strategies, each a line.
var All = train.Strategies{
	auto.Strategy,
	batched.Single,
	centric.Strategy,
	leap.Strategy,
	p3.Strategy,
	grappa.Strategy,
	outlook.Of(pipe.Pipe),
	outlook.Of(pipe.Graph),
	local.Strategy,
	program.Strategy,
}

// Computed names those that compute the steps of a job themselves: all but auto, which chooses one
// of them, and program.
func Computed() (names []string) {
	for _, s := range All {
		if s.Choose == nil && !s.Elsewhere {
			names = append(names, s.Name)
		}
	}
	return names
}

// Settings lists the settings that a recipe may have, with those of all strategies.
func Settings() []nn.Option { return recipe.Settings(All.Declared()) }
