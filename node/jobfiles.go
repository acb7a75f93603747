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
		return j, checkpoint, nil
	case !errors.Is(err, fs.ErrNotExist):
		return j, "", err
	case len(j.Nodes) == 0:
		return j, "", api.Conflict("job %s has not begun yet, so there is no model: `hopmesh train watch %s` shows when it has", id, id)
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
	d, ok := m.plan.State().Datasets[j.Dataset]
	if !ok {
		return api.Conflict("the dataset %s, on which job %s was trained, is no longer in the mesh, and its features are what predictions are made from", j.DatasetName, id)
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
