package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
)

// Rules are what the strategies ask of recipes.
type Rules interface {
	// Declared returns what the strategies declare of their settings.
	Declared() strategy.Declarations
	// Check returns an error if a recipe can't be trained by its strategy, naming the
	// setting.
	Check(r *Recipe, model *nn.Model, about dataset.About) error
	// CheckSweep returns an error if its strategy can't train the models of a sweep
	// together, though it trains sweeps.
	CheckSweep(r *Recipe) error
}

// Check returns an error if this graph can't be trained by the recipe. The error names
// the setting as users give it.
func (r Recipe) Check(about dataset.About, rules Rules) error {
	if len(r.Sweep) > 0 {
		return r.checkSweep(about, rules)
	}
	if err := r.checkNumbers(); err != nil {
		return err
	}
	if err := r.Schedule.check(r.Rate, r.Epochs); err != nil {
		return err
	}
	if err := r.checkWords(); err != nil {
		return err
	}
	if err := rules.Declared().Check(&r.Sharing); err != nil {
		return err
	}
	if err := r.checkEmbeddings(about); err != nil {
		return err
	}
	if r.kind().Pairs {
		if err := r.checkLinks(about); err != nil {
			return err
		}
	} else if err := r.checkGraph(about); err != nil {
		return err
	}
	about = r.Sees(about)
	model, err := r.NewModel(about.Features, about.Classes)
	if err != nil {
		return err
	}
	n := r.Model.Relations
	if (r.Model.Related() || n != 0) && n != about.Relations {
		return fmt.Errorf("the model tells %d relations apart, and the edges of the dataset have %d: train it on the dataset that it was made for", n, about.Relations)
	}
	if r.Model.Weighted && (r.Model.Model != nn.Program || n > 0) {
		return errors.New("the recipe has weights of edges, which only a program is given where edges have no relations: start the job anew")
	}
	if n := r.Model.EdgeFeatures; n > 0 && n != about.EdgeFeatures {
		return fmt.Errorf("the model reads %d features of edges, and the edges of the dataset have %d: train it on a dataset with the same ones, or give {model.edges}=off", n, about.EdgeFeatures)
	}
	if r.Model.EdgeFeatures > 0 && r.Sharing.Topology() == strategy.Sharded {
		return errors.New("{topology} is sharded, and features of edges are read where each node has all edges: leave it out, or give {model.edges}=off")
	}
	if form := model.Form(); (about.Ends != "" || about.Triples > 0) && form.Ends != about.Ends && (form.Ends != "" || form.Apart || form.Together) {
		return errors.New("the relations of the dataset end at other types than those that the model tells apart: train it on the dataset that it was made for")
	}
	if (about.Starts != "" || about.Triples > 0) && model.Form().Together && r.Model.Starts != about.Starts {
		return errors.New("the relations of the dataset begin at other types than those that the model tells apart: train it on the dataset that it was made for")
	}
	if err := rules.Check(&r, model, about); err != nil {
		return err
	}
	return r.checkFanouts(model.Hops())
}

// positive reports whether a number is above 0 and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func (r Recipe) checkNumbers() error {
	switch {
	case r.Epochs < 1:
		return fmt.Errorf("{epochs} is %d: train for at least one", r.Epochs)
	case !positive(r.Rate):
		return fmt.Errorf("{lr} is %g: give a number above 0, such as 0.01", r.Rate)
	case r.Batch < 0:
		return fmt.Errorf("{batch} is %d: give full, or how many training vertices a step takes", r.Batch)
	case r.Patience < 0:
		return fmt.Errorf("{patience} is %d: give how many evaluations in a row may bring nothing better, or 0 to never stop early", r.Patience)
	case r.Delta != 0 && !positive(r.Delta):
		return fmt.Errorf("{train.huber_delta} is %g: give an error above 0, such as 0.5", r.Delta)
	case r.EvalEvery < 1:
		return fmt.Errorf("{eval-every} is %d: give how many epochs lie between two evaluations, at least 1", r.EvalEvery)
	}
	return r.Optimizer.Check()
}

func (s *Schedule) check(base float64, epochs int) error {
	switch {
	case !slices.Contains([]string{Constant, Step, Cosine, Plateau}, s.Kind):
		return fmt.Errorf("{train.schedule} is %q: it is one of constant, step, cosine and plateau", s.Kind)
	case s.Warmup < 0 || s.Warmup >= epochs:
		return fmt.Errorf("{train.warmup} is %d epochs of %d: give 0, or fewer than all", s.Warmup, epochs)
	case s.lowers() && s.Every < 1:
		return fmt.Errorf("{train.step_every} is %d: give at least 1", s.Every)
	case s.lowers() && (!positive(s.Factor) || s.Factor >= 1):
		return fmt.Errorf("{train.factor} is %g: give a number between 0 and 1, such as 0.5", s.Factor)
	case s.Least != 0 && (!positive(s.Least) || s.Least > base):
		return fmt.Errorf("{train.least_lr} is %g: give a number from 0 to {lr}, which is %g", s.Least, base)
	}
	return nil
}

// CheckUse returns an error if a setting was set that has no effect beside the rest of
// the recipe; asked is the requested strategy. It is for whoever begins a job: such a
// recipe means the same without the setting. For what other models of a sweep could use
// see nn.Unused.
func (r Recipe) CheckUse(asked string, strategies strategy.Declarations) error {
	s := &r.Schedule
	unused := func(key string, value any, where string) error {
		return &nn.Unused{Key: key, Why: fmt.Sprintf("{%s}=%v is for {train.schedule}=%s, and this job's is %s: leave it out, or choose another schedule", key, value, where, s.Kind)}
	}
	const lowering = Step + " or " + Plateau
	switch {
	case s.Every != 0 && !s.lowers():
		return unused("train.step_every", s.Every, lowering)
	case s.Factor != 0 && !s.lowers():
		return unused("train.factor", s.Factor, lowering)
	case s.Least != 0 && s.Kind != Cosine && s.Kind != Plateau:
		return unused("train.least_lr", s.Least, Cosine+" or "+Plateau)
	case r.Delta != 0 && r.Loss != task.Huber:
		return &nn.Unused{Key: "train.huber_delta", Why: fmt.Sprintf("{train.huber_delta}=%v is for {train.loss}=%s, and this job's is %s: leave it out, or choose that loss", r.Delta, task.Huber, r.Loss)}
	case r.Links != nil && len(r.Links.Hits) > 0 && r.Links.Ranks == 0:
		return &nn.Unused{Key: hitsKey, Why: "{link.hits} says up to which ranks a pair is a hit, and {link.ranks} is 0, so that none has a rank: leave one of them out"}
	case r.Links != nil && r.Links.Margin != 0 && r.Loss != link.Margin:
		return &nn.Unused{Key: "link.margin", Why: fmt.Sprintf("{link.margin}=%v is for {train.loss}=%s, and this job's is %s: leave it out, or choose that loss", r.Links.Margin, link.Margin, r.Loss)}
	}
	return strategies.CheckUse(&r.Sharing, asked)
}

func (r Recipe) checkWords() error {
	for _, w := range []struct {
		setting, is string
		known       []string
	}{
		{"{optimizer}", r.Optimizer.Kind, []string{"adam", "adamw", "sgd"}},
		{"{normalize-features}", r.Features, features.Hows},
		{"{task}", cmp.Or(r.Task, task.Kinds[0].Name), task.Names()},
		{"{train.loss}", r.Loss, r.kind().LossNames()},
		{"{train.metric}", r.Metric, r.metricNames()},
	} {
		if !slices.Contains(w.known, w.is) {
			return fmt.Errorf("%s is %q: it is one of %s", w.setting, w.is, strings.Join(w.known, ", "))
		}
	}
	return nil
}

// metricNames returns the metrics that epochs may be compared by.
func (r *Recipe) metricNames() []string {
	if kind := r.kind(); !kind.Pairs {
		return kind.MetricNames()
	}
	return task.PairMetrics(r.links())
}

// kind returns the task, the first if it is not known.
func (r *Recipe) kind() *task.Kind { return cmp.Or(task.Named(r.Task), task.Kinds[0]) }

func (r Recipe) checkGraph(about dataset.About) error {
	kind, has := r.kind(), task.For(about.Targets)
	switch {
	case about.Pairs:
		return fmt.Errorf("the edges of the dataset have a given split, some of which are to be found out, and {task} is %s: give {task} link", kind.Name)
	case about.Triples > 0:
		return fmt.Errorf("the dataset has triples, some of which are to be found out, and {task} is %s: give {task} link", kind.Name)
	case about.Classes == 0:
		return errors.New("the dataset has no labels to learn: import it again from a source that has some")
	case has != kind:
		return fmt.Errorf("{task} is %s, and the dataset has targets of %s: leave it out, or import the dataset again with {dataset.task} %s", kind.Name, cmp.Or(has, &task.Kind{Name: string(about.Targets)}).Name, kind.Name)
	case r.Links != nil:
		return fmt.Errorf("settings of links, such as {edge-split}, are for {task} link, and the task is %s: leave them out", kind.Name)
	case (r.Weights != nil || r.Balanced) && !kind.Weighted:
		return fmt.Errorf("{train.class_weights} weighs classes, and the task is %s: leave it out", kind.Name)
	case r.Weights != nil && len(r.Weights) != about.Classes:
		return fmt.Errorf("{train.class_weights} has %s, and the dataset has %d classes, or columns: give one for each", Count(len(r.Weights), "number"), about.Classes)
	case slices.ContainsFunc(r.Weights, func(w float64) bool { return !positive(w) }):
		return fmt.Errorf("{train.class_weights} has a weight that is not above 0: give positive numbers, such as 1,2.5")
	case len(about.Splits) == 0:
		return errors.New("the dataset has no split, which says which vertices are for training: import it again with one")
	case r.Split < 0 || r.Split >= len(about.Splits):
		if len(about.Splits) == 1 {
			return fmt.Errorf("{split} is %d, and the dataset has one only, which is {split} 0", r.Split)
		}
		return fmt.Errorf("{split} is %d, and the dataset has the splits 0 to %d", r.Split, len(about.Splits)-1)
	}
	split := about.Splits[r.Split]
	switch {
	case split.Train == 0:
		return fmt.Errorf("split %d of the dataset has no training vertices with a label: choose another {split}, or import the dataset with vertices marked for training", r.Split)
	case split.Val == 0 && r.Patience > 0:
		return fmt.Errorf("{patience} needs validation vertices to compare epochs by, and split %d has none: leave it out, or choose another {split}", r.Split)
	case split.Val == 0 && r.Schedule.Kind == Plateau:
		return fmt.Errorf("{train.schedule}=plateau needs validation vertices to compare epochs by, and split %d has none: choose another schedule or {split}", r.Split)
	case kind.Exclusive && task.MetricNamed(r.Metric).Ranked && about.Classes < 2:
		return fmt.Errorf("{train.metric}=roc_auc compares classes, and the dataset has %d", about.Classes)
	}
	return nil
}

func (r Recipe) checkFanouts(hops int) error {
	if len(r.Fanouts) == 0 {
		return r.checkEach()
	}
	if hops == 0 {
		return fmt.Errorf("{fanout} is for models that hear neighbours, and a %s hears none: leave it out", r.Model.Model)
	}
	if len(r.Fanouts) != hops {
		return fmt.Errorf("{fanout} has %s and the model %s: give one number for each hop, from the roots outwards, or full", Count(len(r.Fanouts), "number"), Count(hops, "hop"))
	}
	for _, k := range r.Fanouts {
		if k < 0 || k > math.MaxInt32 {
			return fmt.Errorf("{fanout} has %d in it: give how many neighbours are drawn, or full", k)
		}
	}
	return r.checkEach()
}

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// MostModels bounds the models of a sweep. Their metadata must fit in the head of a
// checkpoint.
const MostModels = 64

// checkSweep is Check for the models of a sweep, each by itself and all together.
func (r *Recipe) checkSweep(about dataset.About, rules Rules) error {
	if len(r.Sweep) > MostModels {
		return fmt.Errorf("{sweep} makes %d models, and one job trains at most %d: start several jobs", len(r.Sweep), MostModels)
	}
	if err := rules.Declared().CheckSweep(&r.Sharing, r.Sharing.Strategy); err != nil {
		return err
	}
	if err := rules.CheckSweep(r); err != nil {
		return err
	}
	for i := range r.Sweep {
		of := &r.Sweep[i].Recipe
		if len(of.Sweep) > 0 {
			return fmt.Errorf("{sweep}: model %d is a sweep itself", i)
		}
		if err := of.Check(about, rules); err != nil {
			return err
		}
		if err := r.checkBatches(of); err != nil {
			return err
		}
	}
	return nil
}

// checkBatches returns an error if a model can't be trained on the batches of a recipe,
// or not be compared with its model.
func (r *Recipe) checkBatches(of *Recipe) error {
	a, err := nn.New(r.Model, 1, 1)
	if err != nil {
		return err
	}
	b, err := nn.New(of.Model, 1, 1)
	if err != nil {
		return err
	}
	if r.Model.Model != of.Model.Model && a.Hops() != b.Hops() {
		return fmt.Errorf("{sweep} model: a %s of %s and a %s of %s can't train on the same batches: give {layers}, so that all have as many, or start one job for each value",
			r.Model.Model, Count(a.Hops(), "hop"), of.Model.Model, Count(b.Hops(), "hop"))
	}
	const batches = "all models of a sweep train on the same batches"
	for _, s := range []struct {
		name, why string
		same      bool
	}{
		{"batch", batches, r.Batch == of.Batch},
		{"fanout", batches, slices.Equal(r.Fanouts, of.Fanouts) && reflect.DeepEqual(r.Each, of.Each)},
		{"seed", batches, r.Seed == of.Seed},
		{"split", batches, r.Split == of.Split},
		{"normalize-features", "all models of a sweep read the same features", r.Features == of.Features},
		{"epochs", "all models of a sweep train side by side", r.Epochs == of.Epochs},
		{"eval-every", "all models of a sweep train side by side", r.EvalEvery == of.EvalEvery},
		{"task", "all models of a sweep learn the same targets", r.Task == of.Task},
		{"train.loss", "the losses of all models of a sweep are compared", r.Loss == of.Loss},
		{"train.huber_delta", "the losses of all models of a sweep are compared", r.Delta == of.Delta},
		{"train.class_weights", "the losses of all models of a sweep are compared", slices.Equal(r.Weights, of.Weights) && r.Balanced == of.Balanced},
		{"train.metric", "all models of a sweep are compared by it", r.Metric == of.Metric},
		{"edge-split", "all models of a sweep learn the same pairs", r.links().Split == of.links().Split},
		{"link.relation", "all models of a sweep learn the same pairs", reflect.DeepEqual(r.links().Relation, of.links().Relation)},
		{"link.width", "embeddings of all models of a sweep have one width", r.links().Width == of.links().Width},
		{"link.negatives", "all models of a sweep learn the same pairs", r.links().Negatives == of.links().Negatives && r.links().From == of.links().From},
		{"link.margin", "the losses of all models of a sweep are compared", r.links().Margin == of.links().Margin},
		{"link.ranks", "all models of a sweep rank pairs alike", r.links().Ranks == of.links().Ranks},
		{hitsKey, "all models of a sweep rank pairs alike", slices.Equal(r.links().Hits, of.links().Hits)},
		{"link.decoder", "all models of a sweep score pairs alike", r.links().Decoder == of.links().Decoder},
		{"strategy", "all models of a sweep share the nodes in one way", reflect.DeepEqual(r.Sharing, of.Sharing)},
		{"layers", fmt.Sprintf("a model of %s and one of %s can't train on the same batches", Count(a.Hops(), "hop"), Count(b.Hops(), "hop")), a.Hops() == b.Hops()},
		{EmbeddingsKey, "rows of vertices are learnt for one model", r.Embeddings == 0 && of.Embeddings == 0},
		{"model", "all models of a sweep read the same blocks, and these models weigh edges, see each vertex itself, or tell relations apart, in different ways", a.Form() == b.Form()},
	} {
		if !s.same {
			return fmt.Errorf("{sweep} %s: %s: start one job for each value", s.name, s.why)
		}
	}
	return nil
}
