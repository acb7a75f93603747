package recipe

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
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
	for model, want := range map[string][2]string{"rgcn": {"", ""}, "hetero:sage": {"", "1,0,1"}, "hgt": {"0,1,1", "1,0,1"}} {
		r, err := ofOne(api.TrainRequest{Dataset: "d", Model: model}, "", d, strategy.Place{})
		if err != nil || r.Model.Relations != 3 || r.Model.Starts != want[0] || r.Model.Ends != want[1] {
			t.Errorf("%s: %d relations from %q to %q, %v", model, r.Model.Relations, r.Model.Starts, r.Model.Ends, err)
		}
	}
	for _, model := range []string{"hetero:sage", "hgt"} {
		if _, err := ofOne(api.TrainRequest{Dataset: "d", Model: model}, "", sweepable, strategy.Place{}); err == nil || !strings.Contains(err.Error(), "import a typed graph") {
			t.Errorf("%s of a graph without types: %v", model, err)
		}
	}
}

// The fan-outs of relations are found by their names, and those of others are what is given without
// one.
func TestFanoutsByRelation(t *testing.T) {
	types := graph.Types{
		Vertices: []graph.VertexType{{Name: "author", Vertices: 40, Features: 3}, {Name: "paper", Vertices: 60, First: 3, Features: 5}},
		Relations: []graph.Relation{
			{Source: "author", Name: "writes", Target: "paper"}, {Source: "paper", Name: "cites", Target: "paper"}, {Source: "paper", Name: "by", Target: "author"},
			{Source: "author", Name: "cites", Target: "author"},
		},
	}
	d := sweepable
	var err error
	if d.About.Types, err = types.Text(); err != nil {
		t.Fatal(err)
	}
	ask := func(all []int, each map[string][]int) api.TrainRequest {
		return api.TrainRequest{Dataset: "d", Model: "rgcn", Fanout: all, RelationFanout: each}
	}
	r, err := ofOne(ask([]int{4, 3}, map[string][]int{"writes": {10, 5}, "author-cites-author": {1, 2}}), "", d, strategy.Place{})
	if err != nil || !reflect.DeepEqual(r.Each, [][]int{{10, 4, 4, 1}, {5, 3, 3, 2}}) || !reflect.DeepEqual(r.Fanouts, []int{19, 13}) {
		t.Errorf("%v of %v, %v", r.Each, r.Fanouts, err)
	}
	if r, err := ofOne(ask([]int{4, 3}, nil), "", d, strategy.Place{}); err != nil || r.Each != nil {
		t.Errorf("%v, %v", r.Each, err)
	}
	untyped := sweepable
	for _, c := range []struct {
		want  string
		typed bool
		ask   api.TrainRequest
	}{
		{"names relations, and the dataset d has none", false, ask(nil, map[string][]int{"writes": {1, 1}})},
		{"{fanout} names reads, and no relation is called reads: the dataset has writes, cites, by, cites", true, ask([]int{1, 1}, map[string][]int{"reads": {1, 1}})},
		{"both paper-cites-paper and author-cites-author are called cites: give the whole name", true, ask([]int{1, 1}, map[string][]int{"cites": {1, 1}})},
		{"names the relation author-writes-paper twice", true, ask([]int{1, 1}, map[string][]int{"writes": {1, 1}, "author-writes-paper": {2, 2}})},
		{"leaves out the relation paper-cites-paper", true, ask(nil, map[string][]int{"writes": {1, 1}})},
		{"has 1 number for the relation paper-cites-paper and 2 for author-writes-paper", true, ask([]int{1, 1}, map[string][]int{"paper-cites-paper": {1}})},
		{"has 0 for a relation", true, ask([]int{0, 0}, map[string][]int{"writes": {1, 1}})},
	} {
		of := untyped
		if of.Name = "d"; c.typed {
			of = d
		}
		_, err := ofOne(c.ask, "", of, strategy.Place{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Rows of vertices are learnt where these have no features: of all, unless the request says no, or of
// those of some types, if it says so.
func TestRecipesThatLearnRows(t *testing.T) {
	types := graph.Types{
		Vertices:  []graph.VertexType{{Name: "author", Vertices: 40, Features: 3}, {Name: "paper", Vertices: 60, First: 3, Features: 1, Bare: true}},
		Relations: []graph.Relation{{Source: "author", Name: "writes", Target: "paper"}},
	}
	typed, bare := sweepable, sweepable
	typed.About.Features, bare.About.Features = 4, 0
	var err error
	if typed.About.Types, err = types.Text(); err != nil {
		t.Fatal(err)
	}
	given := func(value string) []api.Setting { return []api.Setting{{Key: "train.embeddings", Value: value}} }
	for _, c := range []struct {
		d       plan.Dataset
		set     []api.Setting
		columns int
		bare    []int
		refused string
	}{
		{sweepable, nil, 0, nil, ""},
		{sweepable, given("8"), 0, nil, "{train.embeddings} is for vertices without features"},
		{bare, nil, 64, nil, ""},
		{bare, given("8"), 8, nil, ""},
		{bare, given("off"), 0, nil, "the dataset has no features for the model to read"},
		{bare, given("-3"), 0, nil, "{train.embeddings} is -3"},
		{typed, nil, 0, nil, ""},
		{typed, given("8"), 8, []int{3}, ""},
	} {
		r, err := ofOne(api.TrainRequest{Dataset: "d", Set: c.set}, strategy.Single, c.d, strategy.Place{})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v of %d features: %v", c.set, c.d.About.Features, err)
			}
			continue
		}
		if err != nil || r.Embeddings != c.columns || !slices.Equal(r.Bare, c.bare) {
			t.Errorf("%v of %d features: %d columns, %v, %v", c.set, c.d.About.Features, r.Embeddings, r.Bare, err)
		}
		if rows := LearnsRows(&api.TrainRequest{Set: c.set}, c.d); rows != (c.columns > 0) {
			t.Errorf("%v of %d features: rows are learnt: %v", c.set, c.d.About.Features, rows)
		}
	}
	d := plan.Dataset{Nodes: []string{"a", "b"}, Shards: []plan.Shard{{Holders: []int{0}}, {Holders: []int{1}}}}
	s := &plan.State{Members: map[string]plan.Member{"a": {}, "b": {}}}
	if by, why, err := StrategyOf("", "", true, s, d); by != "leap" || why == "" || err != nil {
		t.Errorf("%s, since %q: %v", by, why, err)
	}
}

// A recipe of triples says how many relations they have and which split they are given, ranks among
// all entities, and decodes by relation unless it was said otherwise.
func TestRecipesOfTriples(t *testing.T) {
	types := graph.Types{
		Vertices:  []graph.VertexType{{Name: "entity", Vertices: 100, Features: 8}},
		Relations: []graph.Relation{{Source: "entity", Name: "knows", Target: "entity"}, {Source: "entity", Name: "likes", Target: "entity"}},
		Given:     &[3]uint64{700, 100, 200},
	}
	d := sweepable
	var err error
	if d.About.Types, err = types.Text(); err != nil {
		t.Fatal(err)
	}
	asked := api.TrainRequest{Dataset: "d", Model: "rgcn", Task: "link"}
	r, err := ofOne(asked, "", d, strategy.Place{})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Links; r.Model.Relations != 4 || l.Relations != 2 || *l.Given != *types.Given || l.Split != [3]float64{0.7, 0.1, 0.2} || l.Ranks != link.All || l.Decoder != "distmult" || r.Batch != 175 {
		t.Errorf("%d relations of messages, batches of %d, and %+v", r.Model.Relations, r.Batch, l)
	}
	asked.Set = []api.Setting{{Key: "link.decoder", Value: "dot"}, {Key: "link.ranks", Value: "50"}}
	if r, err := ofOne(asked, "", d, strategy.Place{}); err != nil || r.Links.Decoder != "dot" || r.Links.Ranks != 50 {
		t.Errorf("%+v, %v", r.Links, err)
	}
	asked.EdgeSplit = []float64{0.8, 0.1, 0.1}
	if _, err := ofOne(asked, "", d, strategy.Place{}); err == nil || !strings.Contains(err.Error(), "the triples of the dataset have one: leave it out") {
		t.Error(err)
	}
	if _, err := ofOne(api.TrainRequest{Dataset: "d", Model: "gcn"}, "", d, strategy.Place{}); err == nil || !strings.Contains(err.Error(), "give {task} link") {
		t.Error(err)
	}
	if !slices.Equal(types.Given[:], []uint64{700, 100, 200}) {
		t.Errorf("the dataset's split is %v now", types.Given)
	}
}

// A recipe of edges with a given split says how many each part has, and compares them with given
// pairs if there are some.
func TestRecipesOfAGivenSplit(t *testing.T) {
	of := func(features int, negatives uint64) plan.Dataset {
		types := graph.GivenPairs(100, features, [3]uint64{700, 100, 200}, negatives)
		d := sweepable
		d.About.Features = max(1, features)
		var err error
		if d.About.Types, err = types.Text(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	asked := api.TrainRequest{Dataset: "d", Model: "gcn", Task: "link"}
	for negatives, ranks := range map[uint64]int{0: link.JobRanks, 50: link.Given} {
		r, err := ofOne(asked, "", of(8, negatives), strategy.Place{})
		if err != nil {
			t.Fatal(err)
		}
		if l := r.Links; l.Relations != 0 || *l.Given != [3]uint64{700, 100, 200} || l.Split != [3]float64{0.7, 0.1, 0.2} || l.Ranks != ranks || l.Decoder != "dot" || r.Batch != 175 || r.Embeddings != 0 {
			t.Errorf("batches of %d, %d columns of rows, and %+v", r.Batch, r.Embeddings, l)
		}
	}
	bare := of(0, 50)
	if r, err := ofOne(asked, "", bare, strategy.Place{}); err != nil || r.Embeddings == 0 || !slices.Equal(r.Bare, []int{0}) || !LearnsRows(&asked, bare) {
		t.Errorf("without features %d columns are learnt of vertices with the column %v: %v", r.Embeddings, r.Bare, err)
	}
	asked.Set = []api.Setting{{Key: "link.ranks", Value: "given-source"}}
	if r, err := ofOne(asked, "", of(8, 50), strategy.Place{}); err != nil || r.Links.Ranks != link.GivenOfSource {
		t.Errorf("%+v, %v", r.Links, err)
	}
	if _, err := ofOne(asked, "", of(8, 0), strategy.Place{}); err == nil || !strings.Contains(err.Error(), "{link.ranks} is for pairs that a dataset has") {
		t.Error(err)
	}
	if _, err := ofOne(asked, "", sweepable, strategy.Place{}); err == nil || !strings.Contains(err.Error(), "{link.ranks} is for pairs that a dataset has") {
		t.Error(err)
	}
	if _, err := Relation(of(8, 0), "edge"); err == nil || !strings.Contains(err.Error(), "has no triples: leave it out") {
		t.Error(err)
	}
}
