package node

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// modelHere finds the checkpoint of a job, or says where it is.
func (m *member) modelHere(id string) (j plan.Job, checkpoint string, err error) {
	s := m.plan.State()
	j, ok := s.Jobs[id]
	if !ok {
		return j, "", api.NotFound("%s", noJob(id))
	}
	checkpoint = filepath.Join(m.runner.Folder(j), train.CheckpointFile)
	_, err = os.Stat(checkpoint)
	switch {
	case err == nil:
		if err := jobs.CheckModel(checkpoint); err != nil {
			return j, "", api.Conflict("the model of job %s is damaged: start another job, and remove this one with `hopmesh train remove %s`; %v", id, id, err)
		}
		return j, checkpoint, nil
	case !errors.Is(err, fs.ErrNotExist):
		return j, "", err
	case len(j.Nodes) == 0 && j.Ended():
		return j, "", api.Conflict("job %s was stopped before it began, so there is no model: `hopmesh train resume %s` lets it begin", id, id)
	case len(j.Nodes) == 0:
		return j, "", api.Conflict("job %s has not begun yet, so there is no model: `hopmesh train watch %s` shows when it has", id, id)
	case s.Members[j.Nodes[0]].ID == "" && j.State == plan.Done:
		return j, "", api.Conflict("the model of job %s was on node %s, which is no longer in the mesh, and went with it: start another job", id, nameOf(s, j.Nodes[0]))
	case s.Members[j.Nodes[0]].ID == "":
		return j, "", api.Conflict("what job %s had learnt was on node %s, which is no longer in the mesh, and went with it: `hopmesh train resume %s` begins it anew on another", id, nameOf(s, j.Nodes[0]), id)
	case j.Nodes[0] == m.id.ID() && j.Ended():
		return j, "", api.Conflict("job %s ended before it had a checkpoint, so there is no model: `hopmesh train show %s` says how it ended", id, id)
	case j.Nodes[0] == m.id.ID():
		return j, "", api.Conflict("job %s has no checkpoint yet: one is written every few seconds, and when the job ends", id)
	}
	return j, "", api.Conflict("the model of job %s is on node %s: ask that node's daemon, on that machine or with --addr", id, nameOf(s, j.Nodes[0]))
}

// Predict writes what the job's model says of every vertex of its dataset.
func (b backend) Predict(ctx context.Context, id string, r api.PredictRequest, to io.Writer) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	j, checkpoint, err := m.modelHere(id)
	if err != nil {
		return err
	}
	d, err := m.plan.State().DatasetOf(j)
	if err != nil {
		return api.Conflict("%s", withoutDataset(j, err))
	}
	for i := range d.Shards {
		if !d.Holds(m.id.ID(), i) {
			return api.Conflict("node %s does not hold every shard of dataset %s any more, which predictions are made from: import it with --replicas %d", m.id.Name(), d.Name, len(m.plan.State().Members)-1)
		}
	}
	ctx, done, err := m.imports.begin(ctx) // it ends with the member
	if err != nil {
		return api.Unavailable("this node is stopping")
	}
	defer done()
	shards, err := jobs.OpenShards(d, m.shardFile)
	if err != nil {
		return api.Conflict("%v", err)
	}
	defer jobs.CloseShards(shards)
	err = jobs.Predict(ctx, jobs.Prediction{
		Model: checkpoint, Shards: shards, Folder: m.runner.Folder(j), Memory: m.opts.Memory, Format: r.Format, Embeddings: r.Embeddings,
	}, to)
	if ctx.Err() != nil {
		return api.Unavailable("the prediction was interrupted")
	}
	if err != nil {
		return api.Conflict("%v", err)
	}
	return nil
}

// ExportJob writes the model itself.
func (b backend) ExportJob(_ context.Context, id string, to io.Writer) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	_, checkpoint, err := m.modelHere(id)
	if err != nil {
		return err
	}
	if err := train.Export(to, checkpoint); err != nil {
		return api.Conflict("%v", err)
	}
	return nil
}
