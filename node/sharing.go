package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/node/api"
)

// strategies are the ways in which nodes share a job.
var strategies = []strategy.Strategy{centric.Strategy{}, leap.Strategy{}, p3.Strategy{}}

// strategyOf says whether nodes share the work, and how, and why. Where that is left to
// them, those that own the data choose when the job begins.
func strategyOf(asked string, s *plan.State, d plan.Dataset) (way, why string, err error) {
	owners := ownersOf(d)
	switch asked {
	case "", strategy.Auto:
		switch {
		case len(s.Members) == 1:
			return strategy.Single, "this mesh has one node", nil
		case len(owners) == 1:
			return strategy.Single, fmt.Sprintf("node %s owns every shard of dataset %s", nameOf(s, owners[0]), d.Name), nil
		}
		return strategy.Auto, fmt.Sprintf("%d nodes own shards of dataset %s: they choose when the job begins, by what each strategy would send", len(owners), d.Name), nil
	case strategy.Single:
		return strategy.Single, "it was asked for", nil
	}
	if slices.ContainsFunc(strategies, func(s strategy.Strategy) bool { return s.Name() == asked }) {
		return asked, "it was asked for", nil
	}
	names := []string{strategy.Auto, strategy.Single}
	for _, s := range strategies {
		names = append(names, s.Name())
	}
	return "", "", api.Invalid("there is no strategy %q: choose one of %s", asked, strings.Join(names, ", "))
}

// ownersOf lists who owns shards of a dataset, in the order of the first that each
// owns.
func ownersOf(d plan.Dataset) []string {
	var list []string
	for i := range d.Shards {
		if owner := d.Owner(i); owner != "" && !slices.Contains(list, owner) {
			list = append(list, owner)
		}
	}
	return list
}

// unlikeVersions says what keeps nodes from sharing a job: they must compute alike and
// speak alike, which only programs of one version are known to.
func unlikeVersions(s *plan.State, nodes []string) string {
	for _, id := range nodes {
		a, b := s.Members[nodes[0]], s.Members[id]
		if a.Version != b.Version {
			return fmt.Sprintf("nodes that share a job must run the same version of hopmesh, and node %s runs %s, but node %s %s: install one of them on both, and the job can begin",
				a.Name, a.Version, b.Name, b.Version)
		}
	}
	return ""
}
