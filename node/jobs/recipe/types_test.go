package recipe

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
)

// A recipe of a model that tells relations apart says how many the dataset has, and at which types
// they end if each has a convolution.
func TestRecipesOfTypedGraphs(t *testing.T) {
	types := graph.Types{
		Vertices: []graph.VertexType{{Name: "author", Vertices: 40, Features: 3}, {Name: "paper", Vertices: 60, First: 3, Features: 5}},
		Relations: []graph.Relation{
			{Source: "author", Name: "writes", Target: "paper"}, {Source: "paper", Name: "by", Target: "author"}, {Source: "paper", Name: "cites", Target: "paper"},
		},
	}
	d := sweepable
	var err error
	if d.About.Types, err = types.Text(); err != nil {
		t.Fatal(err)
	}
	for model, ends := range map[string]string{"rgcn": "", "hetero:sage": "1,0,1"} {
		r, err := ofOne(api.TrainRequest{Dataset: "d", Model: model}, "", d, strategy.Place{})
		if err != nil || r.Model.Relations != 3 || r.Model.Ends != ends {
			t.Errorf("%s: %d relations that end at %q, %v", model, r.Model.Relations, r.Model.Ends, err)
		}
	}
	if _, err := ofOne(api.TrainRequest{Dataset: "d", Model: "hetero:sage"}, "", sweepable, strategy.Place{}); err == nil {
		t.Error("a graph without types is trained by relation")
	}
}
