package traintest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Small returns a recipe of a few epochs of several steps, the last of which has fewer
// seed vertices.
func Small(model string) recipe.Recipe {
	r := recipe.DefaultRecipe(model)
	r.Model.Hidden = 12
	r.Epochs, r.Batch, r.Seed = 4, 190, 7
	r.Fanouts = []int{5, 3}
	return r
}

// Started returns the model of a run on one node, ready to train.
func Started(t testing.TB, r recipe.Recipe, shards []*graph.Shard, o train.Options) *train.Learner {
	t.Helper()
	o.Strategies = orAll(o.Strategies)
	tr, err := train.NewTrainer(t.Context(), r, shards, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	if err := tr.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr.Learners[0]
}

// Short returns Small with a single epoch.
func Short(model string) recipe.Recipe {
	r := Small(model)
	r.Epochs = 1
	return r
}

// CoraRecipe returns the recipe of the published accuracies on Cora.
func CoraRecipe(model string) recipe.Recipe {
	r := recipe.DefaultRecipe(model)
	r.Model.Hidden = 16
	r.Features = "row"
	r.Seed = 1
	return r
}

// ExactRecipe returns a recipe with all that could make a step depend on who computes it:
// dropout, sampled neighbours, a last batch that is smaller.
func ExactRecipe(model string) recipe.Recipe {
	r := recipe.DefaultRecipe(model)
	r.Model.Hidden, r.Model.Dropout, r.Model.InputDropout = 4, 0.4, 0.3
	if model == "gcnii" || model == "resgcn" {
		r.Model.Layers, r.Model.InputDropout = 2, 0
	}
	if model == "gat" {
		r.Model.Heads, r.Model.AttentionDropout = 2, 0.3
	}
	r.Fanouts, r.Batch, r.Seed = []int{3, 2}, 17, 11
	return Unaccelerated(r)
}

// Swept returns a recipe with a sweep. Each model is given as "lr=0.1 hidden=8".
func Swept(r recipe.Recipe, models ...string) recipe.Recipe {
	for _, params := range models {
		v := recipe.Variant{Params: map[string]string{}, Recipe: r}
		v.Recipe.Sweep = nil
		for pair := range strings.FieldsSeq(params) {
			key, value, _ := strings.Cut(pair, "=")
			v.Params[key] = value
			number, err := strconv.ParseFloat(value, 64)
			if err != nil && key != "optimizer" && key != "model" {
				panic(err)
			}
			switch of := &v.Recipe; key {
			case "lr":
				of.Rate = number
			case "hidden":
				of.Model.Hidden = int(number)
			case "patience":
				of.Patience = int(number)
			case "optimizer":
				of.Optimizer.Kind = value
			case "dropout":
				of.Model.Dropout = number
			case "model":
				of.Model.Model = value
			default:
				panic("no parameter " + key)
			}
		}
		r.Sweep = append(r.Sweep, v)
	}
	return r
}

// Updating returns settings of leap by which models travel through so many slots and are
// averaged every few steps.
func Updating(slots string, every int) strategy.Settings {
	return strategy.Given(leap.Name, "leap.mode=migrate", "leap.merge="+slots, fmt.Sprintf("leap.sync_every=%d", every))
}

// Inflight returns settings of p3 with k batches under way.
func Inflight(k int, deterministic bool) strategy.Settings {
	s := strategy.Given(p3.Name, fmt.Sprintf("p3.inflight=%d", k))
	s.Deterministic = deterministic
	return s
}

// Pipelines are the strategies that train on the whole graph, and single.
var Pipelines = train.Strategies{batched.Single, pipe.Pipe, pipe.Graph}

// FullGraph returns a recipe with the whole graph in each step.
func FullGraph(model string, layers int) recipe.Recipe {
	r := Small(model)
	r.Model.Layers, r.Batch, r.Fanouts, r.Epochs = layers, 0, nil, 7
	return r
}

// Columnwise returns options with p3 among the strategies.
func Columnwise(o train.Options) train.Options {
	o.Strategies = append(slices.Clone(Strategies), p3.Strategy)
	return o
}

// Sharings returns the settings that are compared with one node, by name.
func Sharings(nodes int) map[string]strategy.Settings {
	all := map[string]strategy.Settings{
		"centric": strategy.Given(centric.Name),
		"stay":    strategy.Given(leap.Name, "leap.mode=stay"),
	}
	for _, slots := range []int{1, 2, nodes} {
		if slots <= nodes {
			all[fmt.Sprintf("migrate %d", slots)] = strategy.Given(leap.Name, "leap.mode=migrate", fmt.Sprintf("leap.merge=%d", slots))
		}
	}
	return all
}

// Ways returns some settings of centric and leap, by name.
func Ways() map[string]strategy.Settings {
	return map[string]strategy.Settings{
		"centric": strategy.Given(centric.Name, "topology=sharded"),
		"leap":    strategy.Given(leap.Name),
		"migrate": strategy.Given(leap.Name, "leap.mode=migrate", "leap.merge=2", "topology=sharded"),
		"tuned":   strategy.Given(leap.Name, "leap.mode=migrate"),
	}
}

// Unaccelerated returns the recipe with an optimizer without moments, so that a run's
// state is its weights.
func Unaccelerated(r recipe.Recipe) recipe.Recipe {
	r.Optimizer.Kind, r.Rate = "sgd", 0.3
	return r
}

// Abroad returns options with a device whose memory is not the host's. made, if not nil,
// is called with it.
func Abroad(o train.Options, made func(d *foreign.Device)) train.Options {
	o.Device = func(threads int) (tensor.Device, error) {
		d := foreign.New(threads)
		if made != nil {
			made(d)
		}
		return d, nil
	}
	return o
}
