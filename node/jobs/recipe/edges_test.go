package recipe

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
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
