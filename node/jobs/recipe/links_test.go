package recipe

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
)

// A request for links is completed, with no need of classes or a split of vertices.
func TestRequestsForLinks(t *testing.T) {
	d := plan.Dataset{About: plan.About{Vertices: 100, Edges: 5000, Features: 8}}
	of := func(r api.TrainRequest) (recipe.Recipe, error) { return ofOne(r, strategy.Single, d, strategy.Place{}) }
	r, err := of(api.TrainRequest{Task: "link"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Batch != recipe.LinkBatch || r.Links.Split != [3]float64{0.85, 0.05, 0.1} || r.Loss != "bce" || r.Metric != "roc_auc" || r.Task != "link" || r.Optimizer.WeightDecay != 0 {
		t.Errorf("%+v of %+v", r.Links, r)
	}
	r, err = of(api.TrainRequest{
		Task: "link", EdgeSplit: []float64{0.6, 0.3, 0.1}, Batch: new(64), WeightDecay: new(0.25),
		Set: []api.Setting{{Key: "link.width", Value: "9"}, {Key: "link.negatives", Value: "5"}, {Key: "link.decoder", Value: "dot"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Batch != 64 || r.Optimizer.WeightDecay != 0.25 || r.Links.Split != [3]float64{0.6, 0.3, 0.1} || r.Links.Width != 9 || r.Links.Negatives != 5 || r.Links.Decoder != "dot" {
		t.Errorf("%+v of %+v", r.Links, r)
	}
	for want, r := range map[string]api.TrainRequest{
		"{link.width} is 0":         {Task: "link", Set: []api.Setting{{Key: "link.width", Value: "0"}}},
		"{link.decoder}=mlp: it is": {Task: "link", Set: []api.Setting{{Key: "link.decoder", Value: "mlp"}}},
		"{batch} is full":           {Task: "link", Batch: new(0)},
		"the dataset has no labels": {},
	} {
		if _, err := of(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := complete(api.TrainRequest{Set: []api.Setting{{Key: "link.width", Value: "9"}}}); err == nil || !strings.Contains(err.Error(), "are for {task} link") {
		t.Errorf("a setting of links in a job of classes: %v", err)
	}
}

// Where several nodes own shards, auto leaves no choice for links.
func TestStrategyOfLinks(t *testing.T) {
	d := plan.Dataset{Nodes: []string{"a", "b"}, Shards: []plan.Shard{{Holders: []int{0}}, {Holders: []int{1}}}}
	s := &plan.State{Members: map[string]plan.Member{"a": {}, "b": {}}}
	for learns, want := range map[string]string{"link": "leap", "": "auto", "class": "auto"} {
		if by, why, err := StrategyOf("", learns, s, d); by != want || why == "" || err != nil {
			t.Errorf("%q: %s, since %q: %v; want %s", learns, by, why, err, want)
		}
	}
}

// What a request leaves out is such that citations are found.
func TestDefaultsOfLinksLearn(t *testing.T) {
	shards := enginetest.Cora(t)
	about := dataset.Describe(shards)
	d := plan.Dataset{About: plan.About{Vertices: about.Vertices, Edges: about.Edges, Features: about.Features}}
	r, err := ofOne(api.TrainRequest{Task: "link", Epochs: new(40)}, strategy.Single, d, strategy.Place{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := train.Run(t.Context(), r, shards, train.Options{Threads: 2, Strategies: strategies.All})
	if err != nil {
		t.Fatal(err)
	}
	if area := result.Best.Scores.Metrics.Test[task.ROCAUC]; area < 0.8 {
		t.Errorf("an area under the ROC curve of %g", area)
	}
}
