package trained

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
)

// Recipe returns the recipe of the model of a checkpoint as it was trained, with nothing left to
// "auto".
func (w *Weighed) Recipe() (recipe.Recipe, error) {
	if w.recipe == nil {
		return recipe.Recipe{}, errors.New("an exported model is not evaluated, and nothing starts from it: take the job's own")
	}
	return *w.recipe, nil
}

// Starts returns an error unless a recipe that is trained on a dataset can start from the weights
// of the model: they have the same layers and shapes, and learn the same task. names are those of the
// dataset's classes or columns of targets; nil: they have none.
func (w *Weighed) Starts(r *recipe.Recipe, about dataset.About, names []string) error {
	if w.columns > 0 || r.Embeddings > 0 {
		return errors.New("rows of vertices are learnt anew in each job, so that none starts from another whose model reads such rows: start it without that one")
	}
	if err := w.reads(&about); err != nil {
		return err
	}
	about = r.Sees(about)
	kind := task.Named(r.Task)
	if kind != w.kind {
		return fmt.Errorf("the model has learned the task %s, and this job's is %s: leave {task} out, and choose a dataset for it", w.kind.Name, kind.Name)
	}
	if about.Classes != w.about.Classes && kind.Pairs {
		return fmt.Errorf("the model makes embeddings of %d columns, and this job's would have %d: leave {link.width} out", w.about.Classes, about.Classes)
	}
	if kind.Pairs && r.Links.Decoder != w.decoder {
		return fmt.Errorf("the model decodes pairs by %s, and this job's would by %s: leave {link.decoder} out", w.decoder, r.Links.Decoder)
	}
	if kind.Pairs {
		if err := w.sameTriples(r.Links.Triples(), r.Links.Divided()); err != nil {
			return err
		}
		if was, now := cmp.Or(w.links, link.Default()).Relation, r.Links.Relation; was != nil && now != nil && r.Model.Related() && was.Name == now.Name && was.Number != now.Number {
			return fmt.Errorf("the model tells relations apart by their order, and has learnt %s as number %d, which it is not in the dataset: choose one that lists its relations as that on which it was trained", was.Name, was.Number+1)
		}
	}
	if about.Classes != w.about.Classes {
		return fmt.Errorf("the model has %s, and the dataset has %d: choose a dataset with the same", recipe.Count(w.about.Classes, "output"), about.Classes)
	}
	if !kind.Pairs {
		if err := w.sameNames(names); err != nil {
			return err
		}
	}
	m, err := nn.New(r.Model, about.Features, about.Classes)
	if err != nil {
		return err
	}
	return sameModel(m.Resolved(), w.model.Resolved())
}

// sameModel returns an error unless two models have the same weights and compute the same with
// them. They may drop others out while they learn.
func sameModel(now, was nn.Spec) error {
	now.Dropout, now.InputDropout, now.AttentionDropout = was.Dropout, was.InputDropout, was.AttentionDropout
	a, b := reflect.ValueOf(now), reflect.ValueOf(was)
	for i := range a.NumField() {
		if a.Field(i).Equal(b.Field(i)) {
			continue
		}
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		return fmt.Errorf("the model has %v for %s, and this job's would have %v: leave out what says so, and this job's model is as that one", b.Field(i), strings.ReplaceAll(name, "_", " "), a.Field(i))
	}
	return nil
}
