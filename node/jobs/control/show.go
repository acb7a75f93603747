package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/node/api"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/wording"
)

// List lists all jobs that the plan knows.
func (c *Jobs) List() []api.JobSummary {
	return Summaries(c.cfg.Plan.State(), func(plan.Job) bool { return true })
}

// Summaries lists the jobs of a plan for which a condition holds.
func Summaries(s *plan.State, which func(plan.Job) bool) []api.JobSummary {
	list := []api.JobSummary{}
	for _, j := range s.JobsInOrder() {
		if which(j) {
			list = append(list, summary(s, j))
		}
	}
	return list
}

// summary converts a job of the plan to what lists show.
func summary(s *plan.State, j plan.Job) api.JobSummary {
	a := api.JobSummary{
		ID: j.ID, State: string(j.State), Dataset: j.DatasetName, Model: requests.Models(requests.Read(j)), Strategy: j.Strategy, Epoch: j.Last(), EpochsTotal: j.Epochs,
		Models: len(j.Bests), Best: bestOf(j, j.Best, j.BestModel), Nodes: []string{}, Error: wording.Text(j.Error),
	}
	if a.Best != nil && len(j.Bests) > 0 {
		a.Best.Model = &j.BestModel
	}
	for _, id := range j.Nodes {
		a.Nodes = append(a.Nodes, s.NameOf(id))
	}
	return a
}

// Show describes one job, with its progress if a node that runs it answers.
func (c *Jobs) Show(ctx context.Context, id string) (api.Job, error) {
	s, j, err := c.Find(ctx, id)
	if err != nil {
		return api.Job{}, err
	}
	a := c.shown(s, j, c.liveOf(ctx, j))
	of := c.ask(ctx, j)
	a.Problems = append(a.Problems, c.sentencesOf(s, j, of)...)
	a.Memory = of.memory()
	return a, nil
}

func (c *Jobs) outlook(s *plan.State) outlook {
	return outlook{s, aside(s, c.cfg.Answers), c.cfg.Answers}
}

// Problems returns sentences about what is wrong with jobs and what to do about it. It
// asks no other node.
func (c *Jobs) Problems(s *plan.State) []string {
	var list []string
	o := c.outlook(s)
	for _, j := range s.JobsInOrder() {
		if p := o.problem(j); p != "" && !o.inLine(j) {
			list = append(list, p)
		}
	}
	list = append(list, c.saidHere(s)...)
	v := c.cfg.Runner.View()
	if v.Unkept != "" {
		list = append(list, unkept(c.cfg.Name, v.Job, v.Unkept))
	}
	if v.Programless {
		list = append(list, programless(c.cfg.Name, v.Job))
	}
	if v.Broken != "" {
		list = append(list, fmt.Sprintf("job %s is computed on this node's processor: %s", v.Job, v.Broken))
	}
	return list
}

func (c *Jobs) shown(s *plan.State, j plan.Job, l live) api.Job {
	sum := summary(s, j)
	a := api.Job{
		ID: sum.ID, State: sum.State, Error: sum.Error, Dataset: sum.Dataset, Model: sum.Model, Strategy: sum.Strategy, Why: whyNow(s, j),
		Seed: j.Seed, Generation: j.Generation, Nodes: sum.Nodes, EpochsTotal: sum.EpochsTotal, Epoch: sum.Epoch, Best: sum.Best,
		History: make([]api.JobEpoch, 0, len(j.History)), Models: modelsOf(j, requests.Read(j), l.Diverged), Problems: []string{},
		Devices: []string{}, Notes: []string{},
	}
	recipe := requests.Read(j)
	a.Task = cmp.Or(recipe.Task, task.Kinds[0].Name)
	if recipe.From != nil {
		a.From = recipe.From.Job
	}
	for _, e := range j.Schedule {
		a.Schedule = append(a.Schedule, entryOf(e))
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
	if p := c.outlook(s).problem(j); p != "" {
		a.Problems = append(a.Problems, p)
	}
	return a
}

// entryOf describes an entry of a job's schedule. Its strategy may be one of another version.
func entryOf(e schedule.Entry) api.JobEntry {
	how, err := requests.Strategies.Declared().Describe(e.Strategy, e.Part)
	if err != nil {
		how = wording.Text(err.Error())
	}
	return api.JobEntry{From: e.From, Generation: e.Generation, Strategy: e.Strategy, How: how, Rate: e.Rate, Why: wording.Text(e.Why)}
}

func bestOf(j plan.Job, epoch, model int) *api.JobBest {
	e, ok := j.EpochAt(epoch, model)
	if !ok || e.Eval == nil {
		return nil
	}
	best := &api.JobBest{Epoch: e.Epoch, ValAccuracy: e.Eval.Val, TestAccuracy: e.Eval.Test}
	best.Metrics, best.Metric = metricsOf(e.Eval)
	return best
}

// modelsOf describes each model of a sweep. The node that runs the job may know of more models
// that have diverged than the plan does.
func modelsOf(j plan.Job, recipe *recipe.Recipe, diverged []string) []api.JobModel {
	if len(diverged) != len(j.Bests) {
		diverged = j.Diverged
	}
	list := []api.JobModel{}
	for i := range j.Bests {
		m := api.JobModel{Params: map[string]string{}, Best: bestOf(j, j.Bests[i], i), History: []api.JobEpoch{}}
		if i < len(recipe.Sweep) && recipe.Sweep[i].Params != nil {
			m.Params = recipe.Sweep[i].Params
		}
		if i < len(diverged) {
			m.Diverged = diverged[i]
		}
		for _, e := range j.Of(i) {
			m.History = append(m.History, epochOf(e))
		}
		list = append(list, m)
	}
	return list
}

// whyNow returns why the nodes of a job use its strategy, or used it last. If the nodes
// choose the strategy, the reason belongs to their generation; other nodes chose in
// another one.
func whyNow(s *plan.State, j plan.Job) string {
	generation := j.Generation
	if n := len(j.History); j.State != plan.Running && n > 0 {
		generation = j.History[n-1].Generation
	}
	for _, e := range slices.Backward(j.History) {
		if e.Generation == generation && e.Why != "" {
			return e.Why
		}
	}
	for _, e := range slices.Backward(j.Schedule) {
		if len(j.Nodes) == 1 && e.Generation <= generation && e.Work == j.Work() && e.Why != "" {
			return fmt.Sprintf("%s trains alone: %s", s.NodesNamed(j.Nodes), wording.Text(e.Why))
		}
	}
	switch {
	case j.Strategy != strategy.Auto || len(j.Nodes) == 0 || j.State != plan.Running && len(j.History) == 0:
		return j.Why
	case len(j.Nodes) == 1:
		return fmt.Sprintf("%s owns every shard of dataset %s since generation %d, and trains alone", s.NodesNamed(j.Nodes), j.DatasetName, generation)
	}
	return fmt.Sprintf("%d nodes own shards of dataset %s since generation %d: they choose when they have met", len(j.Nodes), j.DatasetName, generation)
}
