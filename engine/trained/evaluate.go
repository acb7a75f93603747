package trained

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// TrainedSplit is the split that a model was trained on.
const TrainedSplit = -1

// EvaluateOptions select what is evaluated.
type EvaluateOptions struct {
	Index int // of a sweep's models; BestModel: the best
	Split int // of the dataset; TrainedSplit: the one of training
	// ClassNames are the dataset's; nil: it has none.
	ClassNames []string

	Threads int    // 0: all
	Memory  uint64 // bound in bytes; 0: none
	Dir     string // takes what memory is too small for
	// Device opens the device, which is closed; nil: so many of this machine's cores.
	Device func(threads int) (tensor.Device, error)
}

// An Evaluation is how well a model does on a dataset.
type Evaluation struct {
	Task   *task.Kind
	Metric string // that epochs of training were compared by
	Epoch  int    // of the weights
	Split  int
	Train  Part
	Val    Part
	Test   Part
	// Seconds is how long it took.
	Seconds float64
}

// A Part is how well a model does on one part of a split.
type Part struct {
	Count   int                // vertices with a target, or pairs
	Metrics map[string]float64 // by name; nil: there are none to compare
}

// Evaluate scores the model of a checkpoint on the split of a dataset, which may be another one
// than it was trained on: all vertices have all their neighbours there.
func Evaluate(ctx context.Context, model string, shards []*graph.Shard, o EvaluateOptions) (*Evaluation, error) {
	w, err := ReadWeighed(model, o.Index)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r, err := w.Recipe()
	if err != nil {
		return nil, err
	}
	if o.Split != TrainedSplit {
		r.Split = o.Split
	}
	if w.kind.Pairs && r.Split != 0 {
		return nil, fmt.Errorf("{split} is %d, and a model of {task} link has edges split, and not vertices: leave it out", r.Split)
	}
	about := dataset.Describe(shards)
	if about.Pairs = w.links != nil && w.links.Divided(); graph.TypesOf(shards) != nil { // else shards do not say it
		about.Pairs = graph.TypesOf(shards).Pairs
	}
	if err := w.suits(&r, &about, o.ClassNames); err != nil {
		return nil, err
	}
	d, err := w.open(shards, r.Split)
	if err != nil {
		return nil, err
	}
	if w.kind.Exclusive {
		d.About.Classes = w.about.Classes // the dataset may lack the last ones
	}
	if w.kind.Pairs {
		if r.Links, err = w.linksIn(r.Links, shards); err != nil {
			return nil, err
		}
		if needs := d.About.LinkBytes(r.Links) + budget.Program; o.Memory > 0 && needs > o.Memory {
			return nil, tooLarge("evaluating", needs, o.Memory)
		}
		if err := d.Link(ctx, r.Links, r.Seed); err != nil {
			return nil, err
		}
	}
	result, err := w.evaluate(ctx, &r, d, &o)
	if err != nil {
		return nil, err
	}
	e := &Evaluation{Task: w.kind, Metric: r.Metric, Epoch: w.Epoch, Split: r.Split, Seconds: result.Seconds}
	ranked := r.TaskSpec(&d.About).Ranked()
	metrics := result.Metrics
	if metrics == nil {
		metrics = &epoch.Metrics{Train: named(&result.Train, false), Val: named(&result.Val, ranked), Test: named(&result.Test, ranked)}
	}
	for _, s := range [...]*evaluate.Scores{&result.Train, &result.Val, &result.Test} {
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
			return nil, errors.New("the outputs of the model are not all finite there, so they can't be compared: see whether features of the dataset are far larger than those that it has learned from")
		}
	}
	e.Train, e.Val, e.Test = Part{result.Train.Count, metrics.Train}, Part{result.Val.Count, metrics.Val}, Part{result.Test.Count, metrics.Test}
	return e, nil
}

// named returns the scores of classes by name. ranked means that outputs were ranked.
func named(s *evaluate.Scores, ranked bool) map[string]float64 {
	if s.Count == 0 {
		return nil
	}
	all := map[string]float64{task.Accuracy: s.Accuracy, task.MacroF1: s.MacroF1}
	if ranked {
		all[task.ROCAUC] = s.AUC
	}
	return all
}

// suits returns an error unless the model's task can be evaluated on a dataset.
func (w *Weighed) suits(r *recipe.Recipe, about *dataset.About, names []string) error {
	if err := w.reads(about); err != nil {
		return err
	}
	if w.kind.Pairs {
		if about.Edges == 0 || about.Vertices < 2 {
			return errors.New("the dataset has no edges to find: choose another")
		}
		return w.sameTriples(about.Triples, about.Pairs)
	}
	has := task.For(about.Targets)
	switch {
	case about.Classes == 0:
		return errors.New("the dataset has no labels to compare with: choose another, or import it again from a source that has some")
	case has != w.kind:
		return fmt.Errorf("the model has learned the task %s, and the dataset has other targets (%s): choose another dataset", w.kind.Name, cmp.Or(string(about.Targets), task.Kinds[0].Name))
	case w.kind.Exclusive && about.Classes > w.about.Classes, !w.kind.Exclusive && about.Classes != w.about.Classes:
		return fmt.Errorf("the model has %s, and the dataset has %d: choose a dataset with the same", recipe.Count(w.about.Classes, "output"), about.Classes)
	case len(about.Splits) == 0:
		return errors.New("the dataset has no split, which says which vertices are for training, validation and test: import it again with one")
	case r.Split < 0 || r.Split >= len(about.Splits):
		return fmt.Errorf("{split} is %d, and the dataset has the splits 0 to %d", r.Split, len(about.Splits)-1)
	}
	return w.sameNames(names)
}

// sameTriples returns an error unless the model has learned pairs with as many relations as triples
// have, or of a given split; 0: edges are no triples, and their split is drawn. pairs means that they
// are no triples, and their split is given.
func (w *Weighed) sameTriples(relations int, pairs bool) error {
	divided := w.links != nil && w.links.Divided()
	switch of := cmp.Or(w.links, link.Default()).Triples(); {
	case of == relations && divided == pairs:
		return nil
	case of == 0 && pairs:
		return errors.New("the model has learned edges with a drawn split, and those of the dataset have a given one: choose a dataset whose split is drawn")
	case pairs:
		return fmt.Errorf("the model has learned triples with %s, and the edges of the dataset have no relations: choose the dataset on which it was trained", recipe.Count(of, "relation"))
	case divided:
		return errors.New("the model has learned edges with a given split, and those of the dataset have none: choose a dataset that has one, too")
	case of == 0:
		return fmt.Errorf("the model has learned links without relations, and the dataset has triples with %s: choose a dataset without a given split", recipe.Count(relations, "relation"))
	case relations == 0:
		return fmt.Errorf("the model has learned triples with %s, and the edges of the dataset are none: choose the dataset on which it was trained", recipe.Count(of, "relation"))
	default:
		return fmt.Errorf("the model has learned triples with %s, and those of the dataset have %d: choose the dataset on which it was trained", recipe.Count(of, "relation"), relations)
	}
}

// linksIn returns what the model has learnt of links, with its relation as a dataset has it.
func (w *Weighed) linksIn(s *link.Spec, shards []*graph.Shard) (*link.Spec, error) {
	if s == nil || s.Relation == nil {
		return s, nil
	}
	of := *s
	var err error
	of.Relation, err = s.Relation.In(graph.TypesOf(shards), w.model.Form().Relations > 0)
	return &of, err
}

// sameNames returns an error if the classes, or columns of targets, of a dataset are called something
// else than those that the model has learned, or come in another order. nil: they have no names.
func (w *Weighed) sameNames(names []string) error {
	if len(w.names) == 1 || slices.Equal(w.names, numbers(w.about.Classes)) {
		return nil // one column is the only one whatever it is called, or the model knows no names
	}
	for i, name := range names {
		if i < len(w.names) && name != w.names[i] && name != strconv.Itoa(i) {
			return fmt.Errorf("output %d of the model is %q, and the dataset's is %q: choose a dataset with the same classes in the same order", i, w.names[i], name)
		}
	}
	return nil
}

// evaluate runs the model on a device.
func (w *Weighed) evaluate(ctx context.Context, r *recipe.Recipe, d *dataset.Graph, o *EvaluateOptions) (*evaluate.Result, error) {
	on, err := w.lodge(o.Device, o.Threads)
	if err != nil {
		return nil, err
	}
	defer on.close()
	e := evaluate.New(d, evaluate.Nodes{}, r.TaskSpec(&d.About))
	defer e.Close()
	view := e.Add(w.model, on.weights)
	e.Expect(0, on.foreign != nil, o.Dir)
	e.Once()
	memory, err := inferenceMemory("evaluating", d, w, e.Least(), d.Copied+e.LinkBytes(), o.Memory)
	if err != nil {
		return nil, err
	}
	if err := e.Open(on.device, on.work, evaluate.Options{Memory: memory, Dir: o.Dir, Threads: o.Threads}); err != nil {
		return nil, err
	}
	return e.Evaluate(ctx, view, evaluate.Moment{}, on.fault)
}
