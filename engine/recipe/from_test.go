package recipe_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
)

// A recipe that starts from a model is read as it was written, but not by a program that does not
// know of it: such a one would draw other weights.
func TestRecipesThatStartFromAModel(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	r.Seed = 1<<64 - 1
	plain, err := json.Marshal(r)
	if err != nil || strings.Contains(string(plain), `"from"`) || !strings.Contains(string(plain), `"seed":18446744073709551615,`) {
		t.Errorf("%s, %v", plain, err)
	}
	r.From = &recipe.From{Job: "j1", Key: "abcd1234", Weights: strings.Repeat("0f", 32)}
	of := r
	r.Sweep = []recipe.Variant{{Params: map[string]string{"lr": "1"}, Recipe: of}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again recipe.Recipe
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%s was read as %+v, %v", text, again, err)
	}
	type before recipe.Recipe // has no methods
	if err := json.Unmarshal(text, new(before)); err == nil {
		t.Error("a program that knows of no models to start from reads the recipe")
	}
	drawn := *link.Default()
	r.From, r.Sweep, r.Links = nil, nil, &drawn
	for from, readable := range map[string]bool{"": true, link.InBatch: false} {
		r.Links.From = from
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, new(before)); err == nil != readable {
			t.Errorf("a program that draws negatives from all vertices reads %s: %v", text, err)
		}
		again = recipe.Recipe{}
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s was read as %+v, %v", text, again, err)
		}
	}
}

// A node of an earlier version takes pairs with a given split for triples. Its recipe is refused.
func TestTriplesAreNoPairs(t *testing.T) {
	about := dataset.About{Vertices: 50, Edges: 300, Features: 3, Triples: 2, Given: &[3]uint64{200, 20, 20}}
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	r.Batch = 20
	if err := r.LearnTriples(about, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(about, strategies.All); err != nil {
		t.Errorf("triples: %v", err)
	}
	about.Pairs = true
	if err := r.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), "are pairs with a given split") {
		t.Errorf("pairs: %v", err)
	}
}

// A program that knows no weights and relations of a loader's edges would leave them out: it reads no
// recipe that has them.
func TestRecipesOfProgramsThatReadEdges(t *testing.T) {
	type before recipe.Recipe // has no methods
	for _, of := range []nn.Spec{{Model: nn.Program}, {Model: nn.Program, Weighted: true}, {Model: nn.Program, Relations: 3}, {Model: "rgcn", Relations: 3}} {
		r := recipe.DefaultRecipe("gcn")
		r.Model = of
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		readable := of.Model != nn.Program || !of.Weighted && of.Relations == 0
		if err := json.Unmarshal(text, new(before)); err == nil != readable {
			t.Errorf("an earlier program reads %s: %v", text, err)
		}
		var again recipe.Recipe
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s was read as %+v, %v", text, again, err)
		}
	}
}

// A recipe that says on which nodes learnt rows are can't be read by a program that knows of such rows and
// not of that: it would wait for other messages.
func TestRecipesThatSayWhereRowsAre(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	r.Seed, r.Embeddings = 1<<64-1, 8
	for at, readable := range map[string]bool{"": true, recipe.AtAll: false, recipe.AtOwners: false} {
		r.EmbeddingsAt = at
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var before struct{ Seed [1]uint64 }
		if err := json.Unmarshal(text, &before); err == nil != readable || readable && before.Seed[0] != r.Seed {
			t.Errorf("a program that has all rows on each node reads %s: %v", text, err)
		}
		var again recipe.Recipe
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s was read as %+v, %v", text, again, err)
		}
	}
}

// A recipe that names hits of its own, or edges with a given split, can't be read by a program that
// knows of neither: it would rank epochs by others, or learn other pairs.
func TestRecipesOfLinksThatCameLater(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	r.Seed, r.Embeddings, r.EmbeddingsAt, r.Links = 1<<64-1, 8, recipe.AtAll, link.Default()
	for _, s := range []link.Spec{*link.Default(), {Hits: []int{20, 50, 100}}, {Given: &[3]uint64{5, 1, 1}}} {
		plain := s.Width > 0
		r.Links = &s
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var before struct{ Seed [1][1]uint64 }
		if err := json.Unmarshal(text, &before); err == nil != plain || plain && before.Seed[0][0] != r.Seed {
			t.Errorf("a program that knows of neither reads %s: %v", text, err)
		}
		var again recipe.Recipe
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s was read as %+v, %v", text, again, err)
		}
	}
}

func FuzzRecipe(f *testing.F) {
	f.Add(`{"model":{"model":"gcn"},"seed":7,"epochs":3}`)
	f.Add(`{"seed":[7],"from":{"job":"j1","key":"abcd1234","weights_sha256":"00"}}`)
	f.Add(`{"seed":[[7]],"embeddings":8,"embeddings_at":"owners"}`)
	f.Add(`{"seed":[[[7]]],"links":{"hits":[20,50]}}`)
	f.Add(`{"seed":[[[[7]]]]}`)
	f.Add(`{"seed":[],"sweep":[{"recipe":{"seed":null}}]}`)
	f.Add(`{"Seed":" [1]"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var r, again recipe.Recipe
		if json.Unmarshal([]byte(text), &r) != nil {
			return
		}
		whole, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(whole, &again)
		}
		other, _ := json.Marshal(again)
		if err != nil || string(other) != string(whole) {
			t.Fatalf("%q is %s, and then %s: %v", text, whole, other, err)
		}
	})
}
