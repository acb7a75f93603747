package recipe

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
)

// learnt trains what a request asks for, as a source of other jobs.
func learnt(t *testing.T, r api.TrainRequest) (*Source, plan.Dataset) {
	t.Helper()
	shards := enginetest.Communities(t, 300)
	about := dataset.Describe(shards)
	d := plan.Dataset{About: plan.About{Vertices: about.Vertices, Edges: about.Edges, Features: about.Features, Classes: about.Classes}}
	for i := range about.Classes {
		d.About.ClassNames = append(d.About.ClassNames, string(rune('a'+i)))
	}
	for _, s := range about.Splits {
		d.About.Splits = append(d.About.Splits, plan.SplitSizes{Train: s.Train, Val: s.Val, Test: s.Test})
	}
	full, err := ofOne(r, strategy.Single, d, strategy.Place{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), full, shards, train.Options{Threads: 1, Strategies: strategies.All, Dir: dir, ClassNames: d.About.ClassNames}); err != nil {
		t.Fatal(err)
	}
	w, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	from, err := NewSource(plan.Job{ID: "j1", Key: "abcd1234"}, w)
	if err != nil {
		t.Fatal(err)
	}
	return from, d
}

// What a request leaves out of the model is as in the job that it starts from.
func TestRequestsThatStartFromAModel(t *testing.T) {
	from, d := learnt(t, api.TrainRequest{
		Model: "sage", Hidden: new(6), Dropout: new(0.25), Features: "row", Epochs: new(2), Rate: new(0.5), Seed: new(uint64(9)),
		Set: []api.Setting{{Key: "sage.aggregator", Value: "max"}, {Key: "model.input_dropout", Value: "0.125"}},
	})
	r, err := startingAt(api.TrainRequest{Dataset: "d", From: "j1"}, strategy.Single, from, d, strategy.Place{})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model
	if m.Model != "sage" || m.Hidden != 6 || m.Dropout != 0.25 || m.InputDropout != 0.125 || m.Aggregator != "max" || r.Features != "row" || r.Rate != 0.01 || r.Seed != 0 || r.Epochs != 200 {
		t.Errorf("%+v", r)
	}
	if r.From == nil || *r.From != (recipe.From{Job: "j1", Key: "abcd1234", Weights: trained.Hash(from.Model.Weights)}) {
		t.Errorf("%+v", r.From)
	}
	swept := api.TrainRequest{Dataset: "d", From: "j1", Sweep: []api.Sweep{{Key: "lr", Values: []string{"0.1", "0.2"}}, {Key: "dropout", Values: []string{"0", "0.5"}}}}
	all, text, err := Of(swept, strategy.Single, from, &plan.State{}, d)
	if err != nil || len(all.Sweep) != 4 || all.From == nil || all.Sweep[3].Recipe.From == nil || all.Sweep[3].Recipe.Model.Dropout != 0.5 {
		t.Errorf("%s, %v", text, err)
	}
	for want, r := range map[string]api.TrainRequest{
		"has 6 for hidden, and this job's would have 7": {Hidden: new(7)},
		"has sage for model":                            {Model: "gat"},
		"has learned the task class":                    {Task: "link"},
	} {
		if _, err := startingAt(r, strategy.Single, from, d, strategy.Place{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Classes are learnt by their places, so both datasets must call those alike.
func TestClassesOfTheModelThatAJobStartsFrom(t *testing.T) {
	from, d := learnt(t, api.TrainRequest{Epochs: new(1), Hidden: new(6)})
	for want, names := range map[string][]string{
		"output 1 of the model is \"b\", and the dataset's is \"c\": choose a dataset with the same classes in the same order": {"a", "c", "b", "d"},
		"output 3 of the model is \"d\", and the dataset's is \"e\"":                                                           {"a", "b", "c", "e"},
		"": nil,
	} {
		other := d
		other.About.ClassNames = names
		_, err := startingAt(api.TrainRequest{}, strategy.Single, from, other, strategy.Place{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Where links are learnt, edges that were held out stay so.
func TestLinksThatStartFromAModel(t *testing.T) {
	from, d := learnt(t, api.TrainRequest{Task: "link", EdgeSplit: []float64{0.5, 0.25, 0.25}, Seed: new(uint64(9)), Epochs: new(1), Hidden: new(6), Loss: "margin", Set: []api.Setting{{Key: "link.width", Value: "3"}, {Key: "link.margin", Value: "0.5"}, {Key: "link.ranks", Value: "all"}}})
	if from.Task("") != "link" || from.Task("class") != "class" || (*Source)(nil).Task("") != "" {
		t.Error("the task is another")
	}
	r, err := startingAt(api.TrainRequest{Dataset: "d", From: "j1"}, strategy.Single, from, d, strategy.Place{})
	if err != nil || r.Task != "link" || r.Seed != 9 || r.Links.Split != [3]float64{0.5, 0.25, 0.25} || r.Links.Width != 3 || r.Loss != "margin" || r.Links.Margin != 0.5 {
		t.Errorf("%+v of %+v, %v", r.Links, r, err)
	}
	if r.Links.Ranks != link.All {
		t.Errorf("pairs are ranked among %d vertices, and in the source among all", r.Links.Ranks)
	}
	r, err = startingAt(api.TrainRequest{Set: []api.Setting{{Key: "link.ranks", Value: "50"}}}, strategy.Single, from, d, strategy.Place{})
	if err != nil || r.Links.Ranks != 50 {
		t.Errorf("%+v, %v", r.Links, err)
	}
	_, err = startingAt(api.TrainRequest{Set: []api.Setting{{Key: "link.width", Value: "4"}}}, strategy.Single, from, d, strategy.Place{})
	if err == nil || !strings.Contains(err.Error(), "makes embeddings of 3 columns, and this job's would have 4") {
		t.Errorf("of another width: %v", err)
	}
}

// Weights of single vertices are those of a dataset with the same content, whatever it is called.
func TestWeightsOfSingleVerticesHaveTheirDataset(t *testing.T) {
	learnt, plain, triples := recipe.DefaultRecipe("gcn"), recipe.DefaultRecipe("gcn"), recipe.DefaultRecipe("rgcn")
	learnt.Embeddings = 8
	triples.Links = &link.Spec{Relations: 3}
	d := plan.Dataset{ID: "one", Name: "first", Shards: []plan.Shard{{ShardAbout: plan.ShardAbout{SHA256: "aa"}}}}
	copied, other := d, plan.Dataset{ID: "three", Name: "other", Shards: []plan.Shard{{ShardAbout: plan.ShardAbout{SHA256: "bb"}}}}
	copied.ID = "two"
	for name, r := range map[string]recipe.Recipe{"learnt rows": learnt, "triples": triples, "": plain} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		j := plan.Job{ID: "j1", Dataset: d.ID, DatasetName: d.Name, Content: d.Content(), Recipe: string(text)}
		for _, same := range []plan.Dataset{d, copied} {
			if err := Reads(j, same); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		const want = "the model of job j1 has learned a row of each vertex of dataset first, and other has other vertices"
		if err := Reads(j, other); (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", name, err, want)
		}
	}
}

// A job awaits the model that it starts from until it has done an epoch, or has ended.
func TestAwaits(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	plain, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r.From = &recipe.From{Job: "j1", Key: "abcd1234"}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for want, j := range map[bool][]plan.Job{
		true: {{State: plan.Queued, Recipe: string(text)}, {State: plan.Running, Recipe: string(text)}},
		false: {
			{State: plan.Stopped, Recipe: string(text)}, {State: plan.Running, Recipe: string(plain)}, {State: plan.Running, Recipe: "?"},
			{State: plan.Running, Recipe: string(text), History: []plan.Epoch{{Epoch: 1}}},
		},
	} {
		for _, j := range j {
			if Awaits(j, "abcd1234") != want || Awaits(j, "abcd1235") {
				t.Errorf("%+v", j)
			}
		}
	}
}
