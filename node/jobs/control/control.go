// Package control manages the jobs of a mesh: it starts, stops, resumes, removes, lists and
// watches them for users, explains what keeps them from running, and, on the leader, assigns
// them to nodes. It trains nothing: node/jobs runs this node's part of a job.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/peers"
)

// Mesh is the part of the mesh that jobs use.
type Mesh interface {
	ID() string
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
}

// Runner runs this node's part of a job.
type Runner interface {
	View() jobs.View
	// Memory returns what a job takes or took here, and false if that is not known.
	Memory(job string) (jobs.Memory, bool)
	// Desk returns where the program of a job attaches that goes on by the plan with this index.
	Desk(job string, index uint64) *desk.Desk
}

var (
	_ Mesh   = (*mesh.Mesh)(nil)
	_ Runner = (*jobs.Runner)(nil)
)

// Config configures Jobs. All fields are required.
type Config struct {
	Name   string // of this node
	Mesh   Mesh
	Plan   Plan
	Leader *lead.Orders
	Orders *Orders
	Apart  *lead.Apart
	Runner Runner
	// Source reads the model of a job that has ended, from which another one is to start.
	Source func(ctx context.Context, id string) (*recipe.Source, error)
	// Waits lists the nodes that this one waits for in the job with the given key.
	Waits func(key string) []peers.Wait
	// Answers reports whether gossip sees a node alive.
	Answers func(id string) bool
	Log     *slog.Logger
}

// Jobs is this node's access to the jobs of the mesh. Its methods may be called from any
// goroutine.
type Jobs struct {
	cfg Config
}

// New makes Jobs, and registers the call that asks this node for its progress.
func New(cfg Config) *Jobs {
	c := &Jobs{cfg: cfg}
	cfg.Mesh.Handle(callLive, c.serveLive)
	return c
}

func noJob(id string) string {
	return fmt.Sprintf("there is no job %s: `hopmesh train list` shows those there are", id)
}

// unknownPatience bounds how long Find takes for a job that this node does not know.
const unknownPatience = 2 * time.Second

// Find returns a job of the plan. A job that this node does not know may have been created a
// moment ago, so Find catches up with the leader before it reports that there is none.
func (c *Jobs) Find(ctx context.Context, id string) (*plan.State, plan.Job, error) {
	s := c.cfg.Plan.State()
	j, ok := s.Jobs[id]
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, unknownPatience)
		defer cancel()
		if err := c.cfg.Leader.CatchUp(ctx); err != nil {
			c.cfg.Log.Debug("read what the leader knows", "job", id, "err", err)
		}
		s = c.cfg.Plan.State()
		j, ok = s.Jobs[id]
	}
	if !ok {
		return s, j, api.NotFound("%s", noJob(id))
	}
	return s, j, nil
}

// Dataset returns the dataset of a job, or the API's error if it does not exist.
func (c *Jobs) Dataset(j plan.Job) (plan.Dataset, error) {
	d, err := c.cfg.Plan.State().DatasetOf(j)
	if err != nil {
		return d, api.Conflict("%s", withoutDataset(j, err))
	}
	return d, nil
}
