package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/link"
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
	few := d
	few.About.Edges = 60
	if r, err := ofOne(api.TrainRequest{Task: "link"}, strategy.Single, few, strategy.Place{}); err != nil || r.Batch != 12 || r.CheckPairs(25, 1) != nil {
		t.Errorf("of 60 edges, which may be 30 pairs, a step takes %d by default: %v", r.Batch, err)
	}
	few.About.Edges = 3
	if r, err := ofOne(api.TrainRequest{Task: "link"}, strategy.Single, few, strategy.Place{}); err != nil || r.Batch != 1 {
		t.Errorf("of 3 edges a step takes %d by default: %v", r.Batch, err)
	}
	r, err = of(api.TrainRequest{
		Task: "link", EdgeSplit: []float64{0.6, 0.3, 0.1}, Batch: new(64), WeightDecay: new(0.25),
		Set: []api.Setting{{Key: "link.width", Value: "9"}, {Key: "link.negatives", Value: "5"}, {Key: "link.decoder", Value: "mlp"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Batch != 64 || r.Optimizer.WeightDecay != 0.25 || r.Links.Split != [3]float64{0.6, 0.3, 0.1} || r.Links.Width != 9 || r.Links.Negatives != 5 || r.Links.Decoder != "mlp" || r.Links.From != "" || r.Links.Ranks != 100 {
		t.Errorf("%+v of %+v", r.Links, r)
	}
	for value, want := range map[string]link.Spec{"7": {Negatives: 7}, "batch": {From: "batch", Negatives: 1}, "source:4": {From: "source", Negatives: 4}, "uniform:2": {Negatives: 2}} {
		r, err := of(api.TrainRequest{Task: "link", Loss: "margin", Set: []api.Setting{{Key: "link.negatives", Value: value}, {Key: "link.ranks", Value: "all"}, {Key: "link.margin", Value: "0.5"}, {Key: "train.metric", Value: "mrr"}}})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Links; s.From != want.From || s.Negatives != want.Negatives || s.Ranks != link.All || s.Margin != 0.5 || r.Loss != "margin" || r.Metric != "mrr" {
			t.Errorf("%s is %+v, want %+v", value, s, want)
		}
	}
	r, err = of(api.TrainRequest{Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "20, 50,100"}, {Key: "train.metric", Value: "hits_at_50"}}})
	if err != nil || !slices.Equal(r.Links.Hits, []int{20, 50, 100}) || r.Metric != "hits_at_50" {
		t.Errorf("hits at %d, the best by %s, %v", r.Links.Hits, r.Metric, err)
	}
	if r, err := of(api.TrainRequest{Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "1,3,10"}}}); err != nil || r.Links.Hits != nil {
		t.Errorf("the usual hits are written: %d, %v", r.Links.Hits, err)
	}
	for want, r := range map[string]api.TrainRequest{
		"{link.width} is 0": {Task: "link", Set: []api.Setting{{Key: "link.width", Value: "0"}}},
		"{link.decoder}=sum: it is one of dot, distmult, mlp":             {Task: "link", Set: []api.Setting{{Key: "link.decoder", Value: "sum"}}},
		"{link.negatives}=hub: it is one of uniform, source, batch":       {Task: "link", Set: []api.Setting{{Key: "link.negatives", Value: "hub"}}},
		`{link.negatives}=batch:x: "x" is no whole number`:                {Task: "link", Set: []api.Setting{{Key: "link.negatives", Value: "batch:x"}}},
		"{link.negatives} is 0":                                           {Task: "link", Set: []api.Setting{{Key: "link.negatives", Value: "source:0"}}},
		`{link.ranks}=-1: "-1" is neither all nor a number`:               {Task: "link", Set: []api.Setting{{Key: "link.ranks", Value: "-1"}}},
		"{train.metric} is hits_at_3, and {link.ranks} is 0":              {Task: "link", Set: []api.Setting{{Key: "link.ranks", Value: "0"}, {Key: "train.metric", Value: "hits_at_3"}}},
		"{link.margin}=2 is for {train.loss}=margin, and this job's is b": {Task: "link", Set: []api.Setting{{Key: "link.margin", Value: "2"}}},
		`{link.hits}=1,x: "x" is no whole number`:                         {Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "1,x"}}},
		"{link.hits} has 4 ranks":                                         {Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "1,2,3,4"}}},
		`{train.metric} is "hits_at_3": it is one of roc_auc, average_p`:  {Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "20"}, {Key: "train.metric", Value: "hits_at_3"}}},
		"{link.hits} says up to which ranks a pair is a hit, and {link.r": {Task: "link", Set: []api.Setting{{Key: "link.hits", Value: "20"}, {Key: "link.ranks", Value: "0"}}},
		"{train.metric}=hits_at_03: it is one of":                         {Task: "link", Set: []api.Setting{{Key: "train.metric", Value: "hits_at_03"}}},
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
		if by, why, err := StrategyOf("", learns, false, s, d); by != want || why == "" || err != nil {
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
