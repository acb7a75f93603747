package recipe

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
)

// A Source is the model of a job from which another one starts.
type Source struct {
	Job   plan.Job
	Model *trained.Weighed

	recipe recipe.Recipe // by which it was trained
}

// NewSource returns a model as a source.
func NewSource(j plan.Job, m *trained.Weighed) (*Source, error) {
	r, err := m.Recipe()
	if err != nil {
		return nil, err
	}
	return &Source{j, m, r}, nil
}

// Task returns what a job learns of which a request says that: what its source has learned, if the
// request says nothing and there is one.
func (s *Source) Task(asked string) string {
	if s == nil || asked != "" {
		return asked
	}
	return cmp.Or(s.recipe.Task, task.Kinds[0].Name)
}

// begin sets what a job takes over from its source, unless the request says otherwise: the model,
// how features are normalised and, where pairs are learnt, all that says which these are. Edges
// that were held out there would else be learnt from here.
func (s *Source) begin(r *recipe.Recipe, asked *api.TrainRequest) {
	if s == nil {
		return
	}
	if asked.Model == "" || asked.Model == s.recipe.Model.Model {
		r.Model = s.recipe.Model
	}
	r.Features = s.recipe.Features
	if s.recipe.Links != nil {
		links := *s.recipe.Links
		r.Links, r.Seed = &links, s.recipe.Seed
	}
}

// linked reports whether there is a source that has learned links, of which begin takes over how
// pairs are ranked, too.
func (s *Source) linked() bool { return s != nil && s.recipe.Links != nil }

// loss returns the setting of a loss that a job takes over, unless the request gives one: that of a
// source that has learned links, whose margin is taken over, too.
func (s *Source) loss(asked string) []api.Setting {
	if !s.linked() || s.Task(asked) != s.recipe.Task {
		return nil
	}
	return []api.Setting{{Key: "train.loss", Value: s.recipe.Loss}}
}

// from returns what a recipe says of its source; an error if it can't start from that.
func (s *Source) from(r *recipe.Recipe, d plan.Dataset) (*recipe.From, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // weights are drawn
	}
	if declared := Strategies.Of(r.Sharing.Strategy); declared.Elsewhere {
		return nil, errors.New("a program has its own weights: leave --from out")
	}
	if err := Reads(s.Job, d); err != nil {
		return nil, err
	}
	if err := s.Model.Starts(r, About(d), d.About.ClassNames); err != nil {
		return nil, err
	}
	return &recipe.From{Job: s.Job.ID, Key: s.Job.Key, Weights: trained.Hash(s.Model.Weights)}, nil
}

// Reads returns an error if a dataset can't be read by the model of a job since that has weights of
// single vertices, by their numbers in the dataset that it was trained on: learnt rows, or the first
// layer where each entity of triples has a feature of its own.
func Reads(j plan.Job, d plan.Dataset) error {
	if j.Dataset == d.ID || j.Content == d.Content() {
		return nil
	}
	r := Read(j)
	single := r.Links != nil && r.Links.Relations > 0
	for _, m := range r.Models() {
		single = single || m.Embeddings > 0
	}
	if !single {
		return nil
	}
	return fmt.Errorf("the model of job %s has learned a row of each vertex of dataset %s, and %s has other vertices: choose that one", j.ID, j.DatasetName, d.Name)
}

// Awaits reports whether a job needs the model of another, by its key, to begin: it has not trained
// an epoch yet.
func Awaits(j plan.Job, key string) bool {
	if j.Ended() || j.Last() > 0 {
		return false
	}
	from := Read(j).From
	return from != nil && from.Key == key
}
