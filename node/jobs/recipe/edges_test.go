package recipe

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
	"github.com/hopmesh/hopmesh/node/api"
)

// Models read the features that the edges of a dataset have, unless a setting says no.
func TestModelsReadFeaturesOfEdges(t *testing.T) {
	about := plan.About{Vertices: 100, Edges: 900, Features: 3, Classes: 2, EdgeFeatures: 5, Splits: []plan.SplitSizes{{Train: 50, Val: 25, Test: 25}}}
	set := func(all ...string) (settings []api.Setting) {
		for _, one := range all {
			key, value, _ := strings.Cut(one, "=")
			settings = append(settings, api.Setting{Key: key, Value: value})
		}
		return settings
	}
	batch := 20
	for _, c := range []struct {
		r    api.TrainRequest
		want int
		err  string
	}{
		{api.TrainRequest{Model: "gin"}, 5, ""},
		{api.TrainRequest{Model: "gat", Set: set("model.edges=on")}, 5, ""},
		{api.TrainRequest{Model: "mpnn"}, 5, ""},
		{api.TrainRequest{Model: "sage"}, 0, ""},
		{api.TrainRequest{Model: "gin", Set: set("model.edges=off")}, 0, ""},
		{api.TrainRequest{Model: "gat", Set: set("gat.version=2")}, 0, ""},
		{api.TrainRequest{Model: "gat", Set: set("gat.version=2", "model.edges=on")}, 0, "{gat.version} 2 reads no features of edges"},
		{api.TrainRequest{Model: "gin", Task: "link", Batch: &batch, EdgeSplit: []float64{0.8, 0.1, 0.1}}, 5, ""},
		{api.TrainRequest{Model: "gin", Task: "link", Batch: &batch, EdgeSplit: []float64{0.8, 0.1, 0.1}, Set: set("model.edges=off")}, 0, ""},
	} {
		r, err := ofOne(c.r, strategy.Single, plan.Dataset{About: about}, strategy.Place{Nodes: 1, Shards: 1})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s with %v: %v, and not %q", c.r.Model, c.r.Set, err, c.err)
			}
			continue
		}
		if err != nil || r.Model.EdgeFeatures != c.want {
			t.Errorf("%s with %v reads %d features of edges: %v", c.r.Model, c.r.Set, r.Model.EdgeFeatures, err)
		}
	}
	about.EdgeFeatures = 0
	if _, err := ofOne(api.TrainRequest{Model: "mpnn", Set: set("model.edges=on")}, strategy.Single, plan.Dataset{About: about}, strategy.Place{Nodes: 1, Shards: 1}); err == nil || !strings.Contains(err.Error(), "the edges of the dataset have no features that an mpnn reads") {
		t.Errorf("a dataset without features of edges: %v", err)
	}
}

// A program is given what the edges of its dataset have.
func TestProgramsAreToldWhatEdgesHave(t *testing.T) {
	types := graph.Types{
		Vertices:  []graph.VertexType{{Name: "paper", Vertices: 100, Features: 3}},
		Relations: []graph.Relation{{Source: "paper", Name: "cites", Target: "paper"}, {Source: "paper", Name: "names", Target: "paper"}},
	}
	text, err := types.Text()
	if err != nil {
		t.Fatal(err)
	}
	about := plan.About{Vertices: 100, Edges: 900, Features: 3, Classes: 2, Splits: []plan.SplitSizes{{Train: 50, Val: 25, Test: 25}}}
	typed, weighted, described := about, about, about
	typed.Types, typed.Weighted = text, true // by the numbers of relations
	weighted.Weighted = true
	described.EdgeFeatures = 5
	off := []api.Setting{{Key: "model.edges", Value: "off"}}
	for name, c := range map[string]struct {
		about     plan.About
		set       []api.Setting
		relations int
		weighted  bool
		features  int
	}{
		"nothing": {about, nil, 0, false, 0}, "types": {typed, nil, 2, false, 0}, "weights": {weighted, nil, 0, true, 0},
		"features": {described, nil, 0, false, 5}, "features that are not wanted": {described, off, 0, false, 0},
	} {
		r, err := ofOne(api.TrainRequest{Model: nn.Program, Strategy: program.Name, Set: c.set}, program.Name, plan.Dataset{About: c.about}, strategy.Place{Nodes: 1, Shards: 1})
		if m := r.Model; err != nil || m.Relations != c.relations || m.Weighted != c.weighted || m.EdgeFeatures != c.features {
			t.Errorf("%s: %d relations, weights %t and %d features of edges, %v", name, m.Relations, m.Weighted, m.EdgeFeatures, err)
		}
	}
	if r, err := ofOne(api.TrainRequest{Model: "gcn"}, strategy.Single, plan.Dataset{About: weighted}, strategy.Place{Nodes: 1, Shards: 1}); err != nil || r.Model.Weighted {
		t.Errorf("a gcn is given weights: %v", err)
	}
}
