// Package recipe turns a request to train into the recipe of a job: it fills in defaults,
// checks the recipe against the dataset, and chooses the strategy. It reads the plan and
// changes nothing.
package recipe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
)

const defaultModel = "gcn"

// linkBatch returns how many pairs a step has of a request that says nothing of it: no more than
// about half of those for training, so that messages pass along the others. How many there are is
// not known yet: at least half of the edges' share, since an edge and its reverse are one pair.
func linkBatch(r *recipe.Recipe, about dataset.About) int {
	if r.Links.Check() != nil || about.Edges == 0 {
		return recipe.LinkBatch // the check of the recipe says what is wrong
	}
	least := r.Sees(about).Splits[0].Train / 2
	return int(min(recipe.LinkBatch, max(1, least/2)))
}

// Of returns the complete, checked recipe of a request for a dataset and a strategy, with the
// text that the plan keeps of it. from is the model that it starts from; nil: none. Its errors are
// the API's.
func Of(r api.TrainRequest, by string, from *Source, s *plan.State, d plan.Dataset) (recipe.Recipe, string, error) {
	at := placeOf(s, d)
	recipe, err := swept(r, func(r api.TrainRequest) (recipe.Recipe, error) { return startingAt(r, by, from, d, at) })
	if err == nil && len(recipe.Sweep) > 0 {
		err = recipe.Check(About(d), Strategies) // as models of one job
	}
	if err != nil {
		return recipe, "", api.Invalid("%v", err)
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		return recipe, "", fmt.Errorf("write the recipe: %w", err)
	}
	return recipe, string(text), checkRoom(&recipe, text)
}

// ofOne returns the complete, checked recipe of one model, whose weights are drawn.
func ofOne(r api.TrainRequest, by string, d plan.Dataset, at strategy.Place) (recipe.Recipe, error) {
	return startingAt(r, by, nil, d, at)
}

// startingAt is ofOne of a model that may start from another one.
func startingAt(r api.TrainRequest, by string, from *Source, d plan.Dataset, at strategy.Place) (recipe.Recipe, error) {
	recipe, said, err := completed(r, from)
	if err != nil {
		return recipe, err
	}
	program := recipe.Model.Model == nn.Program // it is given what edges have
	if recipe.Model.Related() || program {
		about := About(d)
		recipe.Model.Tell(about.Relations, about.Ends)
		recipe.Model.TellStarts(about.Starts)
	}
	recipe.Model.TellEdges(d.About.EdgeFeatures)
	recipe.Model.Weighted = program && d.About.Weighted && d.About.Types == "" // types come as weights do
	if err := fanouts(&recipe, r, d); err != nil {
		return recipe, err
	}
	kind := task.For(graph.Targets(d.About.Targets))
	if asked := from.Task(r.Task); asked != "" {
		kind = task.Named(asked)
	}
	if kind == nil {
		return recipe, fmt.Errorf("{task} is %q: it is one of %s", cmp.Or(r.Task, d.About.Targets), strings.Join(task.Names(), ", "))
	}
	recipe.Learn(kind, said...)
	if err := recipe.LearnTriples(About(d), len(r.EdgeSplit) > 0, said...); err != nil {
		return recipe, err
	}
	types, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features)
	if err != nil {
		return recipe, err
	}
	if err := recipe.LearnRelation(types); err != nil {
		return recipe, err
	}
	if kind.Pairs && r.Batch == nil {
		recipe.Batch = linkBatch(&recipe, About(d))
	}
	if kind.Pairs && !from.linked() {
		recipe.RankPairs(said...)
	}
	if kind.Pairs && r.WeightDecay == nil {
		recipe.Optimizer.WeightDecay = 0 // products of embeddings would shrink to nothing
	}
	recipe.LearnRows(About(d), bareColumns(d), said...)
	recipe.Sharing.Deterministic = r.Deterministic
	if by != strategy.Single { // the zero Settings are those
		recipe.Sharing.Strategy = by
	}
	if err = recipe.Check(About(d), Strategies); err == nil {
		err = recipe.CheckUse(r.Strategy, declared)
	}
	if err == nil && by != strategy.Single {
		declared.Complete(&recipe.Sharing, at)
		err = declared.CheckNodes(&recipe.Sharing, at.Nodes)
	}
	if err == nil {
		err = declared.CheckShards(&recipe.Sharing, at.Shards)
	}
	if err == nil {
		recipe.From, err = from.from(&recipe, d)
	}
	return recipe, err
}

// placeOf describes the nodes that own a dataset, and its size.
func placeOf(s *plan.State, d plan.Dataset) strategy.Place {
	at := strategy.Place{Nodes: len(d.Owners()), Shards: len(d.Shards)}
	for i := range d.Shards {
		at.Bytes += d.Shards[i].Bytes
	}
	for _, id := range d.Owners() {
		if m := s.Members[id].Memory; m > 0 && (at.Memory == 0 || m < at.Memory) {
			at.Memory = m
		}
	}
	return at
}

// completed returns a recipe in which the model's defaults, or what it starts from, fill in what the
// request leaves out.
// said lists the keys of settings that it gives.
func completed(r api.TrainRequest, from *Source) (full recipe.Recipe, said []string, err error) {
	recipe := recipe.DefaultRecipe(cmp.Or(r.Model, defaultModel))
	from.begin(&recipe, &r)
	m := &recipe.Model
	given(&m.Layers, r.Layers)
	given(&m.Hidden, r.Hidden)
	given(&m.Heads, r.Heads)
	given(&m.Dropout, r.Dropout)
	given(&m.Residual, r.Residual)
	m.Norm = cmp.Or(r.Norm, m.Norm)
	recipe.Optimizer.Kind = cmp.Or(r.Optimizer, recipe.Optimizer.Kind)
	recipe.Features = cmp.Or(r.Features, recipe.Features)
	given(&recipe.Optimizer.WeightDecay, r.WeightDecay)
	given(&recipe.Rate, r.Rate)
	given(&recipe.Epochs, r.Epochs)
	given(&recipe.Batch, r.Batch)
	given(&recipe.Patience, r.Patience)
	given(&recipe.EvalEvery, r.EvalEvery)
	given(&recipe.Split, r.Split)
	given(&recipe.Seed, r.Seed)
	if len(r.EdgeSplit) == 3 {
		recipe.SplitEdges([3]float64(r.EdgeSplit))
	}
	if len(r.Fanout) > 0 {
		recipe.Fanouts = r.Fanout
	}
	set := slices.Concat(from.loss(r.Task), r.Set)
	if r.Loss != "" {
		set = append(set, api.Setting{Key: "train.loss", Value: r.Loss})
	}
	for _, s := range set {
		if err := recipe.Set(s.Key, s.Value, declared); err != nil {
			return recipe, nil, err
		}
		said = append(said, s.Key)
	}
	if from == nil || r.Dropout != nil {
		m.Resolve(said...)
	}
	return recipe, said, nil
}

// Settings lists the settings that a request may have.
func Settings() []nn.Option { return recipe.Settings(declared) }

func given[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// About describes a dataset for the checks of a recipe.
func About(d plan.Dataset) dataset.About {
	a := dataset.About{Vertices: d.About.Vertices, Edges: d.About.Edges, Features: d.About.Features, Classes: d.About.Classes, Targets: graph.Targets(d.About.Targets), EdgeFeatures: d.About.EdgeFeatures}
	if t, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features); err == nil && t != nil {
		a.Relations, a.Ends, a.Starts = t.Seen(), t.Ends(), t.Starts()
		if t.Given != nil {
			a.Triples, a.Given = len(t.Relations), t.Given
			if a.Pairs = t.Pairs; a.Pairs {
				a.Against = t.Relations[graph.PairNegative].Edges
			}
		}
	}
	for _, s := range d.About.Splits {
		a.Splits = append(a.Splits, graph.SplitInfo{Train: s.Train, Val: s.Val, Test: s.Test})
	}
	return a
}

// bareColumns lists the columns of features that say that a vertex is of a type without any.
func bareColumns(d plan.Dataset) (all []int) {
	if t, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features); err == nil && t != nil {
		for _, of := range t.Vertices {
			if of.Bare {
				all = append(all, of.First)
			}
		}
	}
	return all
}

// Read returns the recipe of a job: an empty one if another version of hopmesh wrote it.
func Read(j plan.Job) *recipe.Recipe {
	var r recipe.Recipe
	if json.Unmarshal([]byte(j.Recipe), &r) != nil {
		return new(recipe.Recipe)
	}
	return &r
}

// Models names the kinds of models that a recipe trains, each once.
func Models(r *recipe.Recipe) string {
	var names []string
	for _, m := range r.Models() {
		if !slices.Contains(names, m.Model.Model) {
			names = append(names, m.Model.Model)
		}
	}
	return strings.Join(names, ",")
}

// AtRate returns the text of a job's recipe at another learning rate. Its errors are the API's.
func AtRate(j plan.Job, d plan.Dataset, rate float64) (string, error) {
	var recipe recipe.Recipe
	if err := json.Unmarshal([]byte(j.Recipe), &recipe); err != nil {
		return "", api.Conflict("the recipe of job %s can't be read, as if by another version of hopmesh: %v", j.ID, err)
	}
	recipe.Rate = rate
	if err := recipe.Check(About(d), Strategies); err != nil {
		return "", api.Invalid("%v", err)
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		return "", fmt.Errorf("write the recipe: %w", err)
	}
	return string(text), nil
}

// checkRoom returns an error if the plan would not keep a job with this recipe.
func checkRoom(recipe *recipe.Recipe, text []byte) error {
	models := max(1, len(recipe.Sweep))
	switch {
	case recipe.Epochs > plan.MaxEpochs:
		return api.Invalid("%d epochs are too many: a job has 1 to %d", recipe.Epochs, plan.MaxEpochs)
	case recipe.Epochs*models > plan.MaxHistory:
		return api.Invalid("%d epochs of %d models are too many: the mesh keeps %d of all jobs, so give at most --epochs %d, or fewer values to --sweep",
			recipe.Epochs, models, plan.MaxHistory, plan.MaxHistory/models)
	case len(text) > plan.MaxRecipe:
		return api.Invalid("what is to be known of %d models takes %d bytes, and the mesh keeps %d of a job: give fewer values to --sweep", models, len(text), plan.MaxRecipe)
	}
	return nil
}

// ModelIndex returns the index of the requested model of a job: the best unless one was
// asked for.
func ModelIndex(j plan.Job, asked *int) (int, error) {
	switch models := j.Models(); {
	case asked == nil:
		return trained.BestModel, nil
	case models == 1:
		return 0, api.Invalid("job %s trains one model and no sweep: leave --model-index out", j.ID)
	case *asked < 0 || *asked >= models:
		return 0, api.Invalid("--model-index is %d, and job %s has the models 0 to %d: `hopmesh train show %s` lists them", *asked, j.ID, models-1, j.ID)
	}
	return *asked, nil
}
