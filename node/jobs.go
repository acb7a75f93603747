package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
)

// StartJob refuses here what can be told from the plan, so that a job which begins
// can only fail for reasons of its node.
func (b backend) StartJob(ctx context.Context, r api.TrainRequest) (string, error) {
	m, err := b.in()
	if err != nil {
		return "", err
	}
	s := m.plan.State()
	d, ok := s.DatasetByName(r.Dataset)
	if !ok {
		return "", api.NotFound("%s", noDataset(r.Dataset))
	}
	if d.Stage != plan.Ready {
		return "", api.Conflict("dataset %s is still being imported by node %s: start the job when it is ready", d.Name, nameOf(s, d.Importer))
	}
	way, why, err := strategyOf(r.Strategy, s, d)
	if err != nil {
		return "", err
	}
	recipe, err := sweptRecipe(r, func(r api.TrainRequest) (train.Recipe, error) { return sharedRecipe(r, way, d) })
	if err == nil && len(recipe.Sweep) > 0 {
		err = recipe.Check(aboutOf(d)) // as models of one job
	}
	if err != nil {
		return "", api.Invalid("%v", err)
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		return "", fmt.Errorf("write the recipe: %w", err)
	}
	if err := checkRoom(&recipe, text); err != nil {
		return "", err
	}
	if way == strategy.Single && len(plan.HoldersOfAll(d)) == 0 {
		return "", api.Conflict("%s", scattered(s, d))
	}
	if unlike := unlikeVersions(s, ownersOf(d)); way != strategy.Single && unlike != "" {
		return "", api.Conflict("%s", unlike)
	}
	var key [4]byte
	_, _ = rand.Read(key[:]) // never fails
	var made createdJob
	err = m.atLeader(ctx, opCreateJob, plan.CreateJob{
		Key: hex.EncodeToString(key[:]), Dataset: d.ID, Recipe: string(text), Strategy: way, Why: why, Seed: recipe.Seed, Epochs: recipe.Epochs,
		Models: len(recipe.Sweep),
	}, &made)
	if err == nil {
		err = m.readUpTo(ctx, made.Index)
	}
	return made.ID, apiError(err)
}

// sharedRecipe is the whole recipe of one model, checked.
func sharedRecipe(r api.TrainRequest, way string, d plan.Dataset) (train.Recipe, error) {
	recipe, err := recipeOf(r)
	if err != nil {
		return recipe, err
	}
	recipe.Sharing.Deterministic = r.Deterministic
	if way != strategy.Single { // which the zero Settings are
		recipe.Sharing.Strategy = way
	}
	if err = recipe.Check(aboutOf(d)); err == nil {
		err = recipe.CheckUse(r.Strategy)
	}
	if err == nil && way != strategy.Single {
		err = recipe.Sharing.CheckNodes(len(ownersOf(d)))
	}
	if err == nil {
		err = recipe.Sharing.CheckShards(len(d.Shards))
	}
	return recipe, err
}

func scattered(s *plan.State, d plan.Dataset) string {
	return fmt.Sprintf("no node holds every shard of dataset %s, which the strategy single needs: leave --strategy out, and the nodes share the work, or import it with --replicas %d, so that each node has a copy of each shard",
		d.Name, len(s.Members)-1)
}

// stopPatience is how long a stop waits for the node that runs the job, which
// writes a checkpoint.
const stopPatience = 30 * time.Second

// StopJob returns when the job has stopped, or after a while when its node does not
// do it: it will, when it can.
func (b backend) StopJob(ctx context.Context, id string) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	if err := m.order(ctx, opStopJob, id); err != nil {
		return apiError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for {
		changed := m.plan.Changed()
		j, in := m.plan.State().Jobs[id]
		if !in || j.Ended() || !slices.ContainsFunc(j.Nodes, m.answers) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// ResumeJob returns when the job is in the queue.
func (b backend) ResumeJob(ctx context.Context, id string, r api.ResumeRequest) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	c := plan.ResumeJob{ID: id}
	if r.Rate != nil {
		if c.Recipe, err = m.atRate(ctx, id, *r.Rate); err != nil {
			return err
		}
	}
	return apiError(m.order(ctx, opResumeJob, c))
}

// atRate is the recipe of a job at another learning rate.
func (m *member) atRate(ctx context.Context, id string, rate float64) (string, error) {
	s, j, err := m.job(ctx, id)
	if err != nil {
		return "", err
	}
	if n := j.Models(); n > 1 {
		return "", api.Invalid("job %s is a sweep of %d models, each with a learning rate of its own: resume it without --lr, or start another job", id, n)
	}
	d, err := s.DatasetOf(j)
	if err != nil {
		return "", api.Conflict("%s", withoutDataset(j, err))
	}
	var recipe train.Recipe
	if err := json.Unmarshal([]byte(j.Recipe), &recipe); err != nil {
		return "", api.Conflict("the recipe of job %s can't be read, as if by another version of hopmesh: %v", id, err)
	}
	recipe.Rate = rate
	if err := recipe.Check(aboutOf(d)); err != nil {
		return "", api.Invalid("%v", err)
	}
	text, err := json.Marshal(recipe)
	if err != nil {
		return "", fmt.Errorf("write the recipe: %w", err)
	}
	return string(text), nil
}

// RemoveJob returns when this node knows that the job is gone; its files go soon
// after, on each node that has some.
func (b backend) RemoveJob(ctx context.Context, id string) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	return apiError(m.order(ctx, opRemoveJob, id))
}

// Jobs lists all that the plan knows.
func (b backend) Jobs(context.Context) ([]api.JobSummary, error) {
	m, err := b.in()
	if err != nil {
		return nil, err
	}
	return m.jobSummaries(m.plan.State(), func(plan.Job) bool { return true }), nil
}

func (m *member) jobSummaries(s *plan.State, which func(plan.Job) bool) []api.JobSummary {
	list := []api.JobSummary{}
	for _, j := range s.JobsInOrder() {
		if which(j) {
			list = append(list, m.summary(s, j))
		}
	}
	return list
}

// summary tells of a job what this node knows.
func (m *member) summary(s *plan.State, j plan.Job) api.JobSummary {
	a := api.JobSummary{
		ID: j.ID, State: string(j.State), Dataset: j.DatasetName, Model: modelOf(recipeIn(j)), Strategy: j.Strategy, Epoch: j.Last(), EpochsTotal: j.Epochs,
		Models: len(j.Bests), Best: bestOf(j, j.Best, j.BestModel), Nodes: []string{}, Error: j.Error,
	}
	if a.Best != nil && len(j.Bests) > 0 {
		a.Best.Model = &j.BestModel
	}
	for _, id := range j.Nodes {
		a.Nodes = append(a.Nodes, nameOf(s, id))
	}
	return a
}

// Job shows one job, with how far it is if the node that runs it says so.
func (b backend) Job(ctx context.Context, id string) (api.Job, error) {
	m, err := b.in()
	if err != nil {
		return api.Job{}, err
	}
	s, j, err := m.job(ctx, id)
	if err != nil {
		return api.Job{}, err
	}
	a := m.shown(s, j, m.liveOf(ctx, j))
	a.Problems = append(a.Problems, m.saidOf(ctx, s, j)...)
	return a, nil
}

func (m *member) shown(s *plan.State, j plan.Job, l live) api.Job {
	sum := m.summary(s, j)
	a := api.Job{
		ID: sum.ID, State: sum.State, Error: sum.Error, Dataset: sum.Dataset, Model: sum.Model, Strategy: sum.Strategy, Why: whyNow(s, j),
		Seed: j.Seed, Generation: j.Generation, Nodes: sum.Nodes, EpochsTotal: sum.EpochsTotal, Epoch: sum.Epoch, Best: sum.Best,
		History: make([]api.JobEpoch, 0, len(j.History)), Models: modelsOf(j, recipeIn(j), l.Diverged), Problems: []string{},
		Devices: []string{}, Notes: []string{},
	}
	if json.Valid([]byte(j.Recipe)) {
		a.Recipe = json.RawMessage(j.Recipe)
	}
	if l.Runs {
		a.Epoch, a.Step, a.Steps = max(a.Epoch, l.Progress.Epoch), l.Progress.Step, l.Progress.Steps
		a.Notes = append(a.Notes, l.Notes...)
	} else {
		a.Notes = append(a.Notes, j.Notes...)
	}
	if j.Thinned {
		note := fmt.Sprintf("of the epochs of job %s, the mesh keeps the best and the last only, to have room for those of later jobs", j.ID)
		if j.Models() > 1 {
			note = fmt.Sprintf("of the epochs of each model of job %s, the mesh keeps the best and the last only, to have room for those of later jobs: what an epoch took of all models is known in part", j.ID)
		}
		a.Notes = append(a.Notes, note)
	}
	for _, id := range j.Nodes {
		a.Devices = append(a.Devices, s.Members[id].Device)
	}
	for _, e := range j.Of(j.BestModel) {
		a.History = append(a.History, togetherOf(j, e))
	}
	if p := m.jobProblem(s, j); p != "" {
		a.Problems = append(a.Problems, p)
	}
	return a
}

func recipeIn(j plan.Job) *train.Recipe {
	var r train.Recipe
	if json.Unmarshal([]byte(j.Recipe), &r) != nil {
		return new(train.Recipe) // of a version to come
	}
	return &r
}

// modelOf names what is trained, each once.
func modelOf(r *train.Recipe) string {
	var names []string
	for _, m := range r.Models() {
		if !slices.Contains(names, m.Model.Model) {
			names = append(names, m.Model.Model)
		}
	}
	return strings.Join(names, ",")
}

func bestOf(j plan.Job, epoch, model int) *api.JobBest {
	e, ok := j.EpochAt(epoch, model)
	if !ok || e.Eval == nil {
		return nil
	}
	return &api.JobBest{Epoch: e.Epoch, ValAccuracy: e.Eval.Val, TestAccuracy: e.Eval.Test}
}

func epochOf(e plan.Epoch) api.JobEpoch {
	a := api.JobEpoch{
		Epoch: e.Epoch, Model: e.Model, Loss: e.Loss, Seconds: e.Seconds, Phases: api.JobPhases(e.Phases), Rows: api.JobRows(e.Rows),
		Requests: api.JobRequests(e.Requests), Bytes: api.JobBytes(e.Bytes), Generation: e.Generation, Weights: e.Weights,
		Strategy: e.Strategy, Why: e.Why, Slots: e.Slots, Behind: e.Behind, Super: e.Super, Seen: e.Seen,
		Predicted: (*api.JobPredicted)(e.Predicted),
	}
	if v := e.Eval; v != nil {
		a.TrainAccuracy, a.ValAccuracy, a.TestAccuracy = v.Train, v.Val, v.Test
		a.Eval = &api.JobEval{Seconds: v.Seconds, Bytes: api.JobBytes(v.Bytes)}
	}
	return a
}
