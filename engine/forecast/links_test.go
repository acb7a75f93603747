package forecast_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// linked has pairs learnt of a graph if a recipe says so.
func linked(t *testing.T, g *dataset.Graph, r *recipe.Recipe) {
	t.Helper()
	if r.Links == nil {
		return
	}
	if err := forecast.Link(t.Context(), g, r); err != nil {
		t.Fatal(err)
	}
}

// linking returns a recipe that learns links.
func linking(model string, of strategy.Settings) recipe.Recipe {
	r := traintest.Small(model)
	r.Learn(task.Named("link"))
	r.Features, r.Epochs, r.EvalEvery, r.Sharing = "none", 2, 1<<20, of
	r.Links.Width, r.Links.Negatives, r.Links.Decoder = 9, 2, "distmult"
	return r
}

// The bytes of jobs that learn pairs are those that nodes really send each other: of all edges, of one
// relation of a graph with types, and of triples.
func TestBytesOfLinks(t *testing.T) {
	all := traintest.Communities(t, 1500)
	relations := []string{"wrote", enginetest.Back + "wrote", "edited", enginetest.Back + "edited"}
	src := enginetest.Typed(relations...)
	typed, triples := enginetest.Cut(t, src, 5, ""), enginetest.Triples(t, 5)
	for _, of := range []strategy.Settings{strategy.Given("leap"), strategy.Given("centric")} {
		for _, nodes := range []int{2, 3} {
			for name, c := range map[string]struct {
				model  string
				shards []*graph.Shard
				change func(r *recipe.Recipe) error
			}{
				"all edges": {"sage", all, func(r *recipe.Recipe) error { r.Batch = 700; return nil }},
				"relation": {"rgcn", typed, func(r *recipe.Recipe) error {
					r.Batch = 200
					r.Model.Tell(len(relations), src.Meta().Types.Ends())
					if err := r.Set("link.relation", "wrote", strategies.All.Declared()); err != nil {
						return err
					}
					return r.LearnRelation(src.Meta().Types)
				}},
				"triples": {"rgcn", triples, func(r *recipe.Recipe) error {
					r.Batch = 200
					r.Model.Tell(2*enginetest.TripleRelations, "")
					return r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false)
				}},
			} {
				r := linking(c.model, of)
				if err := c.change(&r); err != nil {
					t.Fatal(err)
				}
				t.Run(strings.Join([]string{name, of.Strategy}, " "), func(t *testing.T) { compare(t, r, c.shards, nodes) })
			}
		}
	}
}

// So are those of groups that learn pairs in isolation, with what the second epoch's view brings.
func TestBytesOfIsolatedPairs(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, model := range []string{"gcn", "sage"} {
		for _, nodes := range []int{2, 3} {
			for _, set := range [][]string{
				{"grappa.groups=3"}, {"grappa.groups=5", "grappa.loader=strict", "grappa.swept=1"}, {"grappa.groups=4", "grappa.loader=halo-sampled", "grappa.cap=90"}, {"grappa.groups=4", "grappa.depth=2", "grappa.sweep=off"},
			} {
				r := linking(model, strategy.Given("grappa", append([]string{"grappa.period=1"}, set...)...))
				r.Batch = 700
				t.Run(fmt.Sprint(model, nodes, set), func(t *testing.T) { compare(t, r, shards, nodes) })
			}
			r := linking(model, strategy.Given("grappa", "grappa.period=1", "grappa.groups=5", "grappa.swept=1"))
			r.Batch, r.Sharing.Deterministic = 20, true // so that some shards have no pair in a step
			t.Run(fmt.Sprint("deterministic", model, nodes), func(t *testing.T) { compare(t, r, shards, nodes) })
			r = linking(model, strategy.Given("grappa", "grappa.period=1", "grappa.groups=3"))
			if r.Batch = 200; model == "sage" {
				if err := r.LearnTriples(dataset.About{Triples: enginetest.TripleRelations, Given: enginetest.GivenTriples()}, false); err != nil {
					t.Fatal(err)
				}
				t.Run(fmt.Sprint("triples", nodes), func(t *testing.T) { compare(t, r, enginetest.Triples(t, 5), nodes) })
				continue
			}
			src := enginetest.Typed("wrote", "edited")
			if err := errors.Join(r.Set("link.relation", "wrote", strategies.All.Declared()), r.LearnRelation(src.Meta().Types)); err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprint("relation", nodes), func(t *testing.T) { compare(t, r, enginetest.Cut(t, src, 5, ""), nodes) })
		}
	}
}

// So is their memory, with embeddings and pairs.
func TestMemoryOfLinks(t *testing.T) {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 20_000, Edges: 100_000, Features: 100, Classes: 8, Communities: 64, Inside: 0.9, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	shards := traintest.Cut(t, src, 16)
	for _, c := range []struct {
		nodes int
		by    strategy.Settings
	}{
		{2, bringing(strategy.Given("leap"))}, {4, bringing(strategy.Given("leap"))},
		{2, strategy.Given("grappa", "grappa.period=1", "grappa.groups=4")}, {4, strategy.Given("grappa", "grappa.period=1", "grappa.groups=4", "grappa.loader=strict")},
	} {
		r := linking("sage", c.by)
		r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts, r.Links.Width = 2, 64, 512, []int{10, 5}, 64
		ratio, what := memoryOf(t, r, shards, c.nodes)
		if t.Log(what); ratio < 0.85 || ratio > 1.15 {
			t.Error(what)
		}
	}
}

// What no job could learn is no forecast, but a sentence.
func TestLinksThatCannotBeForecast(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	g, err := dataset.Open(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	r := linking("sage", strategy.Given("leap"))
	r.Batch = 1 << 20
	if err := forecast.Link(t.Context(), g, &r); err == nil || !strings.Contains(err.Error(), "{batch} is 1048576, and the dataset has") {
		t.Error(err)
	}
}

// And those of models that tell relations apart, whose edges come with theirs.
func TestBytesOfRelations(t *testing.T) {
	src := enginetest.Typed("wrote", enginetest.Back+"wrote", "edited", enginetest.Back+"edited")
	shards := enginetest.Cut(t, src, 5, "")
	for _, model := range []string{"rgcn", "hetero:sage", "hgt"} {
		for _, nodes := range []int{2, 3} {
			for _, of := range []strategy.Settings{
				strategy.Given("leap", "topology=sharded"), strategy.Given("grappa", "grappa.period=1", "grappa.groups=3"),
				strategy.Given("grappa", "grappa.period=1", "grappa.groups=5", "grappa.loader=strict", "grappa.swept=2"),
				strategy.Given("grappa", "grappa.period=1", "grappa.groups=4", "grappa.depth=2", "grappa.sweep=off"),
			} {
				r := traintest.Small(model)
				r.Features, r.Epochs, r.EvalEvery, r.Sharing, r.Batch = "none", 2, 1<<20, of, 60
				types := src.Meta().Types
				if r.Model.Tell(len(types.Relations), types.Ends()); model == "hgt" {
					r.Model.TellStarts(types.Starts())
				}
				t.Run(fmt.Sprint(model, nodes, of), func(t *testing.T) { compare(t, r, shards, nodes) })
			}
		}
	}
}

// And those of models that read features of edges, which each node has.
func TestBytesOfFeaturesOfEdges(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Described(true), 5, "")
	for _, model := range []string{"gat", "mpnn"} {
		for _, of := range []strategy.Settings{
			strategy.Given("leap"), strategy.Given("grappa", "grappa.period=1", "grappa.groups=3"),
			strategy.Given("grappa", "grappa.period=1", "grappa.groups=5", "grappa.loader=strict", "grappa.swept=2"),
		} {
			r := traintest.Small(model)
			r.Model.EdgeFeatures, r.Epochs, r.EvalEvery, r.Sharing, r.Batch = enginetest.DescribedColumns, 2, 1<<20, of, 60
			t.Run(fmt.Sprint(model, of), func(t *testing.T) { compare(t, r, shards, 3) })
		}
	}
}

// And those of groups that learn rows of vertices, of which each node has all.
func TestBytesOfRowsInGroups(t *testing.T) {
	shards := enginetest.Bare(t, 400)
	for _, nodes := range []int{2, 3} {
		for _, of := range []strategy.Settings{
			strategy.Given("leap"), strategy.Given("grappa", "grappa.period=1", "grappa.groups=3"), strategy.Given("grappa", "grappa.period=1", "grappa.groups=4", "grappa.loader=strict", "grappa.swept=1"),
		} {
			r := traintest.Small([]string{"gcn", "sage"}[nodes-2])
			r.Features, r.Embeddings, r.Epochs, r.EvalEvery, r.Sharing, r.Batch = "none", 6, 2, 1<<20, of, 60
			t.Run(fmt.Sprint(nodes, of), func(t *testing.T) { compare(t, r, shards, nodes) })
		}
	}
}
