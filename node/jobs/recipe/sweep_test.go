package recipe

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
)

// sweepable is a dataset that all models train on.
var sweepable = plan.Dataset{About: plan.About{Vertices: 100, Edges: 500, Features: 8, Classes: 3, Splits: []plan.SplitSizes{{Train: 10, Val: 10, Test: 10}}}}

func complete(r api.TrainRequest) (recipe.Recipe, error) {
	return ofOne(r, strategy.Single, sweepable, strategy.Place{})
}

// Each model of a sweep is the one that a job of its own would train.
func TestModelsOfASweepAreWhole(t *testing.T) {
	hidden := 32
	r := api.TrainRequest{Dataset: "d", Hidden: &hidden, Deterministic: true, Set: []api.Setting{{Key: "train.warmup", Value: "3"}}, Sweep: []api.Sweep{
		{Key: "model", Values: []string{"gat", "gcnii", "gcn"}}, {Key: "train.schedule", Values: []string{"step", "cosine"}}, {Key: "lr", Values: []string{"0.10", "1e-2"}},
	}}
	got, err := swept(r, complete)
	if err != nil || len(got.Sweep) != 12 {
		t.Fatalf("%d models, %v", len(got.Sweep), err)
	}
	i := 0
	for _, model := range []string{"gat", "gcnii", "gcn"} {
		for _, schedule := range []string{"step", "cosine"} {
			for lr, rate := range []float64{0.1, 0.01} {
				solo, err := complete(api.TrainRequest{
					Dataset: "d", Hidden: &hidden, Model: model, Rate: &rate, Deterministic: true,
					Set: []api.Setting{{Key: "train.schedule", Value: schedule}, {Key: "train.warmup", Value: "3"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				v := got.Sweep[i]
				if !reflect.DeepEqual(v.Recipe, solo) || !v.Recipe.Sharing.Deterministic {
					t.Errorf("model %d is %+v, and alone %+v", i, v.Recipe, solo)
				}
				if want := map[string]string{"model": model, "train.schedule": schedule, "lr": []string{"0.10", "1e-2"}[lr]}; !reflect.DeepEqual(v.Params, want) {
					t.Errorf("model %d has %v", i, v.Params)
				}
				i++
			}
		}
	}
	first := got
	if first.Sweep = nil; !reflect.DeepEqual(first, got.Sweep[0].Recipe) {
		t.Errorf("the recipe is %+v", first)
	}
	if name := Models(&got); name != "gat,gcnii,gcn" {
		t.Errorf("it trains %s", name)
	}
}

// A setting of all models is for those that have a use for it, and each is trained as if
// only they had been told. What none has a use for is refused.
func TestSettingsOfSomeModelsOfASweep(t *testing.T) {
	for _, c := range []struct {
		key, values string
		set         []api.Setting
		says        string                     // of what is refused
		has         func(r recipe.Recipe) bool // the first model hasn't, and the second has
	}{
		{"train.schedule", "constant,step", []api.Setting{{Key: "train.step_every", Value: "5"}, {Key: "train.factor", Value: "0.25"}}, "",
			func(r recipe.Recipe) bool { return r.Schedule.Every == 5 && r.Schedule.Factor == 0.25 }},
		{"model", "gcn,gcnii", []api.Setting{{Key: "train.warmup", Value: "3"}, {Key: "gcnii.alpha", Value: "0.25"}}, "",
			func(r recipe.Recipe) bool { return r.Model.Alpha == 0.25 }},
		{"optimizer", "adam,sgd", []api.Setting{{Key: "train.momentum", Value: "0.5"}}, "",
			func(r recipe.Recipe) bool { return r.Optimizer.Momentum == 0.5 }},
		{"train.schedule", "constant,cosine", []api.Setting{{Key: "train.step_every", Value: "5"}}, "{train.step_every}=5 is for {train.schedule}=step or plateau", nil},
		{"model", "gcn,sage", []api.Setting{{Key: "gat.version", Value: "2"}}, "the setting gat.version is of the model gat", nil},
		{"model", "gcn,gat", []api.Setting{{Key: "gat.version", Value: "9"}}, "model 1 of the sweep (model=gat): {gat.version} is \"9\"", nil},
		{"lr", "0.1,0.2", []api.Setting{{Key: "leap.mode", Value: "stay"}}, "{leap.mode}=stay is for {strategy} leap", nil},
		{"gat.version", "1,2", nil, "the setting gat.version is of the model gat", nil},
	} {
		r := api.TrainRequest{Dataset: "d", Strategy: strategy.Single, Layers: new(2), Set: c.set, Sweep: []api.Sweep{{Key: c.key, Values: strings.Split(c.values, ",")}}}
		got, err := swept(r, complete)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.says, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.key, err)
			continue
		}
		if err := got.Check(About(sweepable), Strategies); err != nil || c.has(got.Sweep[0].Recipe) || !c.has(got.Sweep[1].Recipe) {
			t.Errorf("%s: %v, %+v", c.key, err, got)
		}
		if warmup := got.Sweep[0].Recipe.Schedule.Warmup; (warmup == 3) != (c.key == "model") {
			t.Errorf("%s: the first model has a warm-up of %d epochs", c.key, warmup)
		}
	}
}

func TestSweepsThatAreRefused(t *testing.T) {
	sweep := func(more ...any) (list []api.Sweep) {
		for i := 0; i < len(more); i += 2 {
			list = append(list, api.Sweep{Key: more[i].(string), Values: strings.Split(more[i+1].(string), ",")})
		}
		return list
	}
	for says, list := range map[string][]api.Sweep{
		"can't take \"hiden\", which is no flag that a sweep can take":                sweep("hiden", "1,2"),
		"can't take \"sweep\", which is no flag that a sweep can take":                sweep("sweep", "1,2"),
		"can't take topology, which is the same for all":                              sweep("topology", "sharded,replicated"),
		"can't take leap.mode, which is the same for all":                             sweep("leap.mode", "stay,migrate"),
		"can't take train.metric, by which the models":                                sweep("train.metric", "accuracy,macro_f1"),
		"can't take batch, which is the same for all":                                 sweep("batch", "1,2"),
		"model 2 of the sweep (hidden=-8, lr=1): {hidden} i":                          sweep("hidden", "4,-8", "lr", "1,2"),
		"(model=gcn, gat.version=1): ":                                                sweep("model", "gat,gcn", "gat.version", "1,2"),
		"(train.loss=mse): {train.loss}=mse: it is one":                               sweep("train.loss", "bce,mse"),
		"model 2 of the sweep (lr=0.10) is the same as model 0 of the sweep (lr=0.1)": sweep("lr", "0.1,0.2,0.10"),
		"(patience=-1): {patience} is -1":                                             sweep("patience", "0,-1"),
	} {
		if _, err := swept(api.TrainRequest{Dataset: "d", Sweep: list}, complete); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

// Where auto chooses, a setting of p3 is no reason to ask for p3, which trains no sweeps.
func TestSweepsHaveNoSettingsOfP3(t *testing.T) {
	for _, c := range []struct{ strategy, key, value, says string }{
		{"", "p3.inflight", "2", "{p3.inflight}=2 is for {strategy} p3, which trains no sweeps: leave it out, or start one job for each model"},
		{"auto", "p3.roots", "slices", "{p3.roots}=slices is for {strategy} p3, which trains no sweeps"},
		{"p3", "p3.inflight", "2", "take another {strategy}, or start one job for each model"},
		{"auto", "p3.inflight", "1", ""},
	} {
		r := api.TrainRequest{Dataset: "d", Strategy: c.strategy, Set: []api.Setting{{Key: c.key, Value: c.value}}, Sweep: []api.Sweep{{Key: "lr", Values: []string{"1", "2"}}}}
		_, err := swept(r, complete)
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "model 0")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The largest sweep that may be asked for fits the plan, whatever its models are.
func TestLargestSweepFits(t *testing.T) {
	dims := []api.Sweep{
		{Key: "weight-decay", Values: []string{"0.0005", "0.00051234567"}}, {Key: "train.least_lr", Values: []string{"0.00012345", "0.00054321"}},
		{Key: "gat.version", Values: []string{"1", "2"}}, {Key: "model.head", Values: []string{"none", "linear"}},
		{Key: "dropout", Values: []string{"0.123456789", "0.5"}}, {Key: "lr", Values: []string{"0.0123456789", "0.1"}},
	}
	set := []api.Setting{
		{Key: "train.schedule", Value: "plateau"}, {Key: "leap.mode", Value: "migrate"}, {Key: "leap.pregather", Value: "off"}, {Key: "leap.dedup", Value: "off"},
		{Key: "leap.sync_every", Value: "4"}, {Key: "topology", Value: "replicated"}, {Key: "train.metric", Value: "macro_f1"},
	}
	seed, batch := uint64(1<<64-1), 1024
	r := api.TrainRequest{Dataset: "d", Model: "gat", Seed: &seed, Batch: &batch, Fanout: []int{25, 10}, Features: "binary-row", Set: set, Sweep: dims}
	recipe, err := swept(r, func(r api.TrainRequest) (recipe.Recipe, error) {
		return ofOne(r, "leap", sweepable, strategy.Place{Nodes: 3, Shards: 8})
	})
	if err != nil || len(recipe.Sweep) != plan.MaxModels {
		t.Fatalf("%d models, %v", len(recipe.Sweep), err)
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d models take %d bytes of %d", len(recipe.Sweep), len(text), plan.MaxRecipe)
	if err := checkRoom(&recipe, text); err != nil {
		t.Error(err)
	}
	recipe.Epochs = plan.MaxHistory / plan.MaxModels
	if err := checkRoom(&recipe, text); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(){
		"782 epochs of 64 models are too many: the mesh keeps 50000 of all jobs, so give at most --epochs 781": func() { recipe.Epochs++ },
		"10001 epochs are too many":               func() { recipe.Epochs = plan.MaxEpochs + 1 },
		"64 models takes 65537 bytes, and the me": func() { text, recipe.Epochs = make([]byte, plan.MaxRecipe+1), 1 },
	} {
		was, kept := recipe, text
		change()
		err := checkRoom(&recipe, text)
		if _, ok := errors.AsType[*api.Error](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
		recipe, text = was, kept
	}
}

func TestModelIndex(t *testing.T) {
	one, three := plan.Job{ID: "j1"}, plan.Job{ID: "j2", Bests: make([]int, 3)}
	for _, c := range []struct {
		job   plan.Job
		asked *int
		want  int
		says  string
	}{
		{one, nil, trained.BestModel, ""}, {three, nil, trained.BestModel, ""}, {three, new(0), 0, ""}, {three, new(2), 2, ""},
		{one, new(0), 0, "job j1 trains one model and no sweep: leave --model-index out"},
		{three, new(3), 0, "--model-index is 3, and job j2 has the models 0 to 2"}, {three, new(-1), 0, "--model-index is -1"},
	} {
		got, err := ModelIndex(c.job, c.asked)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || err == nil && got != c.want {
			t.Errorf("%s, %v: %d, %v", c.job.ID, c.asked, got, err)
		}
	}
}
