package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/attach"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
)

// Start adds a job to the queue. It checks everything that the plan knows, so that a job
// that starts can fail only for reasons local to its node.
func (c *Jobs) Start(ctx context.Context, r api.TrainRequest) (string, error) {
	s := c.cfg.Plan.State()
	d, ok := s.DatasetByName(r.Dataset)
	if !ok {
		return "", api.NotFound("%s", api.NoDataset(r.Dataset))
	}
	if d.Stage != plan.Ready {
		return "", api.Conflict("dataset %s is still being imported by node %s: start the job when it is ready", d.Name, s.NameOf(d.Importer))
	}
	var from *recipe.Source
	if r.From != "" {
		var err error
		if from, err = c.cfg.Source(ctx, r.From); err != nil {
			return "", err
		}
		s = c.cfg.Plan.State() // it took a while
		if now := s.Jobs[r.From]; now.Key == from.Job.Key && now.Ended() && now.Generation != from.Job.Generation {
			return "", api.Conflict("job %s was resumed meanwhile and has ended again, so its model may be another: start from it once more", r.From)
		}
	}
	by, why, err := recipe.StrategyOf(r.Strategy, from.Task(r.Task), recipe.LearnsRows(&r, d), s, d)
	if err != nil {
		return "", err
	}
	whole, text, err := recipe.Of(r, by, from, s, d)
	if err != nil {
		return "", err
	}
	if by == strategy.Single && len(plan.HoldersOfAll(d)) == 0 {
		return "", api.Conflict("%s", scattered(s, d))
	}
	nodes := d.Owners()
	if by == strategy.Single {
		nodes = nil // which node runs it is not known yet
	}
	number, unlike := c.number(s, nodes)
	if unlike != "" {
		return "", api.Conflict("%s", unlike)
	}
	var key [4]byte
	_, _ = rand.Read(key[:]) // never fails
	made, err := c.cfg.Orders.create.Do(ctx, plan.CreateJob{
		Key: hex.EncodeToString(key[:]), Dataset: d.ID, Recipe: text, Strategy: by, Why: why, Seed: whole.Seed, Epochs: whole.Epochs,
		Models: len(whole.Sweep), Computing: number,
	})
	if err == nil {
		err = c.cfg.Leader.ReadUpTo(ctx, made.Index)
	}
	return made.ID, lead.APIError(err)
}

// number returns the number that a job computes by: the highest that its nodes and this one, which
// writes its recipe, have in common. A node without it might read the recipe as something else.
func (c *Jobs) number(s *plan.State, nodes []string) (n uint32, unlike string) {
	return commonNumber(s, c.andSelf(s, nodes))
}

// andSelf returns these nodes behind this one.
func (c *Jobs) andSelf(s *plan.State, nodes []string) []string {
	for id := range s.Members {
		if s.NameOf(id) == c.cfg.Name {
			return append([]string{id}, nodes...)
		}
	}
	return nodes
}

// scattered explains why no single node holds enough of a dataset to train on it.
func scattered(s *plan.State, d plan.Dataset) string {
	return fmt.Sprintf("no node holds every shard of dataset %s, which the strategy single needs: leave --strategy out, and the nodes share the work, or import it with --replicas %d, so that each node has a copy of each shard",
		d.Name, len(s.Members)-1)
}

// stopPatience is how long Stop waits for the nodes that run the job to write a
// checkpoint.
const stopPatience = 30 * time.Second

// Stop returns when the job has stopped, or after stopPatience. In the latter case the
// job stops as soon as its nodes can.
func (c *Jobs) Stop(ctx context.Context, id string) error {
	if err := lead.Commit(ctx, c.cfg.Orders.stop, id); err != nil {
		return lead.APIError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for {
		changed := c.cfg.Plan.Changed()
		j, in := c.cfg.Plan.State().Jobs[id]
		if !in || j.Ended() || !slices.ContainsFunc(j.Nodes, c.cfg.Answers) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Resume returns when the job is in the queue.
func (c *Jobs) Resume(ctx context.Context, id string, r api.ResumeRequest) error {
	command := plan.ResumeJob{ID: id}
	if r.Rate != nil {
		var err error
		if command.Recipe, err = c.atRate(ctx, id, *r.Rate); err != nil {
			return err
		}
	}
	return lead.APIError(lead.Commit(ctx, c.cfg.Orders.resume, command))
}

// atRate returns the recipe of a job at another learning rate.
func (c *Jobs) atRate(ctx context.Context, id string, rate float64) (string, error) {
	s, j, err := c.Find(ctx, id)
	if err != nil {
		return "", err
	}
	if n := j.Models(); n > 1 {
		return "", api.Invalid("job %s is a sweep of %d models, each with a learning rate of its own: resume it without --lr, or start another job", id, n)
	}
	d, err := c.Dataset(j)
	if err != nil {
		return "", err
	}
	if id := unlikeOf(s, j, c.andSelf(s, nil)); id != "" { // this node writes the recipe anew
		return "", api.Conflict("job %s computes by number %d, but node %s (hopmesh %s), which was asked, by %s: ask a node for it that computes by %d, as `hopmesh members` shows, or start the job anew",
			j.ID, max(j.Computing, 1), s.NameOf(id), s.Members[id].Version, s.Members[id].Computes, max(j.Computing, 1))
	}
	return recipe.AtRate(j, d, rate)
}

// Remove returns when the job is no longer in this node's plan. Each node removes its
// files soon after.
func (c *Jobs) Remove(ctx context.Context, id string) error {
	return lead.APIError(lead.Commit(ctx, c.cfg.Orders.remove, id))
}

// Attach attaches a program to this node's part of a job.
func (c *Jobs) Attach(ctx context.Context, id string) (api.Attachment, error) {
	s, j, err := c.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !recipe.Strategies.Of(j.Strategy).Elsewhere:
		return nil, api.Conflict("job %s is computed by hopmesh itself: programs attach to jobs that mesh.loader of Python's package hopmesh has started", id)
	case j.Ended():
		return nil, api.Conflict("job %s has ended: `hopmesh train show %s` says how", id, id)
	case len(j.Nodes) > 0 && !slices.Contains(j.Nodes, c.cfg.Mesh.ID()):
		var names []string
		for _, node := range j.Nodes {
			names = append(names, s.NameOf(node))
		}
		return nil, api.Conflict("node %s has no part in job %s: attach on %s", c.cfg.Name, id, strings.Join(names, ", "))
	}
	t, err := attach.New(c.cfg.Runner.Desk(j.ID, s.Index), c.cfg.Log.With("job", j.ID))
	if err != nil {
		return nil, api.Conflict("%v", err)
	}
	return t, nil
}
