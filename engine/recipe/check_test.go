package recipe_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/task"
)

var usual = dataset.About{Vertices: 100, Edges: 500, Features: 8, Classes: 3, Splits: []graph.SplitInfo{{Train: 10, Val: 10, Test: 10}, {Train: 3}, {Val: 4}}}

func TestWhatCannotBeTrained(t *testing.T) {
	if err := recipe.DefaultRecipe("gcn").Check(usual, strategies.All); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *recipe.Recipe, a *dataset.About){
		`there is no strategy "ring": choose one of ` + strings.Join(strategies.All.Choices(), ", "): func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "ring" },
		"the relations of the dataset end at other types": func(r *recipe.Recipe, a *dataset.About) {
			*r, a.Relations, a.Ends = recipe.DefaultRecipe("hetero:sage"), 2, "0,1"
			r.Model.Tell(2, "1,0")
		},
		"the relations of the dataset begin at other types": func(r *recipe.Recipe, a *dataset.About) {
			*r, a.Relations, a.Ends, a.Starts = recipe.DefaultRecipe("hgt"), 2, "0,1", "0,0"
			r.Model.Tell(2, "0,1")
			r.Model.TellStarts("1,0")
		},
		"the model tells 2 relations apart, and the edges of the dataset have 3": func(r *recipe.Recipe, a *dataset.About) {
			*r, a.Relations = recipe.DefaultRecipe("hetero:sage"), 3
			r.Model.Tell(2, "1,0")
		},
		"{epochs} is 0":                              func(r *recipe.Recipe, _ *dataset.About) { r.Epochs = 0 },
		"{lr} is 0":                                  func(r *recipe.Recipe, _ *dataset.About) { r.Rate = 0 },
		"{lr} is NaN":                                func(r *recipe.Recipe, _ *dataset.About) { r.Rate = math.NaN() },
		"{lr} is +Inf":                               func(r *recipe.Recipe, _ *dataset.About) { r.Rate = math.Inf(1) },
		"{weight-decay} is -1":                       func(r *recipe.Recipe, _ *dataset.About) { r.Optimizer.WeightDecay = -1 },
		"{optimizer} is \"lion\"":                    func(r *recipe.Recipe, _ *dataset.About) { r.Optimizer.Kind = "lion" },
		"{batch} is -1":                              func(r *recipe.Recipe, _ *dataset.About) { r.Batch = -1 },
		"{patience} is -1":                           func(r *recipe.Recipe, _ *dataset.About) { r.Patience = -1 },
		"{eval-every} is 0":                          func(r *recipe.Recipe, _ *dataset.About) { r.EvalEvery = 0 },
		"{split} is 3, and the dataset has":          func(r *recipe.Recipe, _ *dataset.About) { r.Split = 3 },
		"{split} is -1":                              func(r *recipe.Recipe, _ *dataset.About) { r.Split = -1 },
		"one only, which is {split} 0":               func(r *recipe.Recipe, a *dataset.About) { r.Split, a.Splits = 1, a.Splits[:1] },
		"split 2 of the dataset has no training":     func(r *recipe.Recipe, _ *dataset.About) { r.Split = 2 },
		"{patience} needs validation":                func(r *recipe.Recipe, _ *dataset.About) { r.Split, r.Patience = 1, 5 },
		"{train.schedule}=plateau needs validation":  func(r *recipe.Recipe, _ *dataset.About) { r.Split = 1; r.Schedule.Choose(recipe.Plateau) },
		"has no split":                               func(_ *recipe.Recipe, a *dataset.About) { a.Splits = nil },
		"no labels":                                  func(_ *recipe.Recipe, a *dataset.About) { a.Classes = 0 },
		"no features":                                func(_ *recipe.Recipe, a *dataset.About) { a.Features = 0 },
		"{fanout} has 1 number and the model 2 hops": func(r *recipe.Recipe, _ *dataset.About) { r.Fanouts = []int{5} },
		"{fanout} has -3":                            func(r *recipe.Recipe, _ *dataset.About) { r.Fanouts = []int{5, -3} },
		"{hidden} is 0":                              func(r *recipe.Recipe, _ *dataset.About) { r.Model.Hidden = 0 },
		"{normalize-features} is \"log\"":            func(r *recipe.Recipe, _ *dataset.About) { r.Features = "log" },
		"{train.schedule} is \"\"":                   func(r *recipe.Recipe, _ *dataset.About) { r.Schedule.Kind = "" },
		"{train.warmup} is 200 epochs of 200":        func(r *recipe.Recipe, _ *dataset.About) { r.Schedule.Warmup = 200 },
		"{train.step_every} is 0":                    func(r *recipe.Recipe, _ *dataset.About) { r.Schedule = recipe.Schedule{Kind: recipe.Step, Factor: .5} },
		"{train.factor} is 1": func(r *recipe.Recipe, _ *dataset.About) {
			r.Schedule = recipe.Schedule{Kind: recipe.Plateau, Every: 1, Factor: 1}
		},
		"{train.least_lr} is 1":                   func(r *recipe.Recipe, _ *dataset.About) { r.Schedule = recipe.Schedule{Kind: recipe.Cosine, Least: 1} },
		"{train.momentum} is 1":                   func(r *recipe.Recipe, _ *dataset.About) { r.Optimizer.Momentum = 1 },
		"{train.momentum} is for {optimizer} sgd": func(r *recipe.Recipe, _ *dataset.About) { r.Optimizer.Momentum = .5 },
		"{train.loss} is \"mse\"":                 func(r *recipe.Recipe, _ *dataset.About) { r.Loss = "mse" },
		"{train.class_weights} has 1 number, and": func(r *recipe.Recipe, _ *dataset.About) { r.Weights = []float64{1} },
		"{train.huber_delta} is -1":               func(r *recipe.Recipe, _ *dataset.About) { r.Delta = -1 },
		"{train.huber_delta} is +Inf":             func(r *recipe.Recipe, _ *dataset.About) { r.Delta = math.Inf(1) },
		"{train.class_weights} weighs classes, and the task is regression: leave it out": func(r *recipe.Recipe, a *dataset.About) {
			r.Learn(task.Named("regression"))
			r.Balanced, a.Targets = true, graph.Numbers
		},
		"{train.metric} is \"f1\"": func(r *recipe.Recipe, _ *dataset.About) { r.Metric = "f1" },
		"roc_auc compares classes": func(r *recipe.Recipe, a *dataset.About) { r.Metric, a.Classes = recipe.ROCAUC, 1 },
	} {
		r, a := recipe.DefaultRecipe("gcn"), usual
		change(&r, &a)
		if err := r.Check(a, strategies.All); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// What would be ignored is refused; what auto may come to use is not.
func TestWhatHasNoEffect(t *testing.T) {
	for _, c := range []struct {
		strategy string
		set      string
		want     string
	}{
		{"centric", "leap.mode=migrate", "{leap.mode}=migrate is for {strategy} leap, and this job's is centric"},
		{"p3", "centric.cache=9", "{centric.cache}=9 is for {strategy} centric, and this job's is p3"},
		{"single", "leap.dedup=off", "{leap.dedup}=off is for {strategy} leap"},
		{"single", "topology=sharded", "{topology}=sharded is for nodes that share a job"},
		{"single", "wire.features=bf16", "has one do it all: leave one of the two out"},
		{"leap", "leap.mode=migrate topology=sharded wire.features=bf16", ""},
		{"centric", "leap.mode=auto leap.pregather=on p3.inflight=1", ""}, // as they are anyway
		{"auto", "leap.mode=migrate centric.cache=9 topology=sharded", ""},
		{"", "leap.mode=migrate", ""},
		{"", "train.huber_delta=0.5", "{train.huber_delta}=0.5 is for {train.loss}=huber, and this job's is softmax: leave it out"},
		{"", "train.huber_delta=0.5 train.loss=huber", ""},
		{"", "train.factor=0.1", "{train.factor}=0.1 is for {train.schedule}=step or plateau, and this job's is constant"},
		{"", "train.schedule=cosine train.step_every=5", "{train.step_every}=5 is for"},
		{"", "train.schedule=step train.least_lr=0.001", "{train.least_lr}=0.001 is for {train.schedule}=cosine or plateau, and this job's is step"},
		{"", "train.step_every=5 train.factor=0.1 train.schedule=step", ""},
		{"", "train.schedule=cosine train.least_lr=0.001", ""},
		{"", "train.schedule=step train.schedule=constant", ""}, // a spec's, and a flag's
	} {
		r := recipe.DefaultRecipe("gcn")
		for pair := range strings.FieldsSeq(c.set) {
			key, value, _ := strings.Cut(pair, "=")
			if err := r.Set(key, value, strategies.All.Declared()); err != nil {
				t.Fatal(err)
			}
		}
		err := r.CheckUse(c.strategy, strategies.All.Declared())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.strategy, c.set, err)
		}
	}
	r := recipe.DefaultRecipe("gcn")
	r.Schedule.Choose(recipe.Step)
	if r.Schedule.Choose(recipe.Plateau); r.Schedule.Every != 10 || r.Schedule.Factor != 0.5 {
		t.Errorf("after another kind, a plateau has %+v", r.Schedule)
	}
}

func TestSettings(t *testing.T) {
	r := recipe.DefaultRecipe("gcn")
	for _, s := range [][2]string{
		{"train.step_every", "7"}, {"train.schedule", "step"}, {"train.warmup", "3"}, {"train.least_lr", "0.001"}, {"train.momentum", "0.9"},
		{"train.loss", "bce"}, {"train.metric", "roc_auc"}, {"train.products", "bf16"}, {"model.head", "linear"},
	} {
		if err := r.Set(s[0], s[1], strategies.All.Declared()); err != nil {
			t.Error(err)
		}
	}
	want := recipe.Schedule{Kind: recipe.Step, Warmup: 3, Every: 7, Factor: 0.5, Least: 0.001}
	if r.Schedule != want || r.Optimizer.Momentum != 0.9 || r.Loss != recipe.BCE || r.Metric != recipe.ROCAUC || !r.BF16 || r.Model.Head != "linear" {
		t.Errorf("set is %+v", r)
	}
	set := func(value string) {
		if err := r.Set("train.class_weights", value, strategies.All.Declared()); err != nil {
			t.Error(err)
		}
	}
	set("1, 2.5")
	if len(r.Weights) != 2 || r.Balanced {
		t.Errorf("%+v", r)
	}
	set("balanced")
	if r.Weights != nil || !r.Balanced || len(r.TaskSpec(&usual).Weights) != usual.Classes {
		t.Errorf("%+v", r)
	}
	if set("3"); len(r.Weights) != 1 || r.Balanced {
		t.Errorf("%+v", r)
	}
	for _, s := range []struct{ key, value, want string }{
		{"train.class_weights", "even", "\"even\" is no number"},
		{"train.shedule", "step", "there is no setting train.shedule: {train.options}"},
		{"train.schedule", "linear", "one of constant, step, cosine, plateau"},
		{"train.warmup", "x", "\"x\" is no whole number"},
		{"train.factor", "x", "\"x\" is no number"},
		{"gat.version", "2", "gat"},
	} {
		before := r
		if err := r.Set(s.key, s.value, strategies.All.Declared()); err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s: %v", s.want, err)
		}
		if r.Schedule != before.Schedule || r.Model != before.Model {
			t.Errorf("{%s}=%s was refused and changed something", s.key, s.value)
		}
	}
	listed := map[string]bool{}
	for _, o := range strategies.Settings() {
		listed[o.Key] = true
		if o.Help == "" || o.Values == "" || o.Default == "" {
			t.Errorf("%s is listed without what it is", o.Key)
		}
	}
	if !listed["train.schedule"] || !listed["sage.aggregator"] {
		t.Error("some are not listed")
	}
}

func TestSchedules(t *testing.T) {
	const base = 0.1
	for name, c := range map[string]struct {
		s     recipe.Schedule
		falls int
		want  map[int]float64 // by epoch, of 20
	}{
		"constant": {recipe.Schedule{Kind: recipe.Constant}, 0, map[int]float64{1: .1, 20: .1}},
		"step":     {recipe.Schedule{Kind: recipe.Step, Every: 5, Factor: .5}, 0, map[int]float64{1: .1, 5: .1, 6: .05, 10: .05, 11: .025, 20: .0125}},
		"cosine": {recipe.Schedule{Kind: recipe.Cosine, Least: .02}, 0, map[int]float64{
			1: .1, 6: .02 + .08*(1+math.Cos(math.Pi*5/20))/2, 11: .06, 20: .02 + .08*(1+math.Cos(math.Pi*19/20))/2,
		}},
		"plateau":       {recipe.Schedule{Kind: recipe.Plateau, Every: 3, Factor: .1}, 2, map[int]float64{1: .001, 20: .001}},
		"least plateau": {recipe.Schedule{Kind: recipe.Plateau, Every: 3, Factor: .1, Least: .005}, 2, map[int]float64{20: .005}},
		"warm-up":       {recipe.Schedule{Kind: recipe.Constant, Warmup: 4}, 0, map[int]float64{1: .025, 2: .05, 3: .075, 4: .1, 5: .1}},
		"warm step":     {recipe.Schedule{Kind: recipe.Step, Every: 5, Factor: .5, Warmup: 2}, 0, map[int]float64{2: .1, 3: .1, 7: .1, 8: .05}},
		"warm cosine":   {recipe.Schedule{Kind: recipe.Cosine, Warmup: 10}, 0, map[int]float64{5: .05, 10: .1, 11: .1, 16: .05}},
	} {
		for epoch, want := range c.want {
			if got := c.s.Rate(base, epoch, 20, c.falls); math.Abs(got-want) > 1e-15 {
				t.Errorf("%s: epoch %d has the rate %g and not %g", name, epoch, got, want)
			}
		}
	}
}
