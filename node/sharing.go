package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/node/api"
)

// strategies are the ways in which nodes share a job.
var strategies = []strategy.Strategy{centric.Strategy{}, leap.Strategy{}, p3.Strategy{}, grappa.Strategy{}, pipe.Pipe, pipe.Graph}

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

// whyNow is why the nodes of a job share it as they do, or did last. Where they choose,
// that is what they came to in their generation: of another one it says nothing, since
// other nodes did.
func whyNow(s *plan.State, j plan.Job) string {
	generation := j.Generation
	if n := len(j.History); j.State != plan.Running && n > 0 {
		generation = j.History[n-1].Generation
	}
	for _, e := range slices.Backward(j.History) {
		if e.Generation == generation && e.Why != "" {
			return e.Why
		}
	}
	switch {
	case j.Strategy != strategy.Auto || len(j.Nodes) == 0 || j.State != plan.Running && len(j.History) == 0:
		return j.Why
	case len(j.Nodes) == 1:
		return fmt.Sprintf("%s owns every shard of dataset %s since generation %d, and trains alone", nodesNamed(s, j.Nodes), j.DatasetName, generation)
	}
	return fmt.Sprintf("%d nodes own shards of dataset %s since generation %d: they choose when they have met", len(j.Nodes), j.DatasetName, generation)
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
