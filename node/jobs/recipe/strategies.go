package recipe

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/node/api"
)

// Strategies lists the strategies by which nodes share a job.
var Strategies = strategies.All

// declared is what they declare of their settings.
var declared = Strategies.Declared()

// LearnsRows reports whether a request has rows of vertices learnt.
func LearnsRows(r *api.TrainRequest, d plan.Dataset) bool {
	learns := d.About.Features == 0 || About(d).Pairs && len(bareColumns(d)) == d.About.Features
	for _, s := range r.Set {
		if s.Key == recipe.EmbeddingsKey {
			learns = s.Value != "off"
		}
	}
	return learns
}

// StrategyOf returns the strategy by which nodes share a job on a dataset, and the
// reason. If the request leaves the choice to the nodes, those that own the data choose
// when the job starts. learns is the name of the task, "" if the dataset says it, and rows reports
// whether rows of vertices are learnt.
func StrategyOf(asked, learns string, rows bool, s *plan.State, d plan.Dataset) (name, why string, err error) {
	owners := d.Owners()
	switch asked {
	case "", strategy.Auto:
		switch {
		case len(s.Members) == 1:
			return strategy.Single, "this mesh has one node", nil
		case len(owners) == 1:
			return strategy.Single, fmt.Sprintf("node %s owns every shard of dataset %s", s.NameOf(owners[0]), d.Name), nil
		}
		if kind := task.Named(learns); kind != nil && kind.Pairs {
			return leap.Name, fmt.Sprintf("%d nodes own shards of dataset %s, and each computes the pairs whose sources it owns", len(owners), d.Name), nil
		}
		if rows {
			return leap.Name, fmt.Sprintf("%d nodes own shards of dataset %s, of whose vertices rows are learnt, and each computes the vertices that it owns", len(owners), d.Name), nil
		}
		return strategy.Auto, fmt.Sprintf("%d nodes own shards of dataset %s: they choose when the job begins, by what each strategy would send", len(owners), d.Name), nil
	case strategy.Single:
		return strategy.Single, "it was asked for", nil
	}
	if Strategies.Has(asked) {
		return asked, "it was asked for", nil
	}
	return "", "", api.Invalid("there is no strategy %q: choose one of %s", asked, strings.Join(Strategies.Choices(), ", "))
}
