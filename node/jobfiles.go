package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// A loan is a folder for what this node takes from others to predict with. It lies
// among the folders of jobs, where the runner clears away what a daemon that died has
// left.
type loan struct {
	parent, job string
	dir         string // "" while nothing was needed
}

func (l *loan) folder() (string, error) {
	if l.dir != "" {
		return l.dir, nil
	}
	err := os.MkdirAll(l.parent, 0o700)
	if err == nil {
		l.dir, err = os.MkdirTemp(l.parent, l.job+".borrowed-*")
	}
	if err != nil {
		return "", fmt.Errorf("make room for what other nodes have: %w", err)
	}
	return l.dir, nil
}

// end gives everything back. What can't be deleted is found again at the next start.
func (l *loan) end(m *member) {
	if l.dir == "" {
		return
	}
	if err := os.RemoveAll(l.dir); err != nil {
		m.log.Warn("could not remove what was borrowed to predict with", "path", l.dir, "err", err)
	}
}

// modelOfJob finds the checkpoint of a job: here, if this node is one of those that ran
// it last, else from one of them.
func (m *member) modelOfJob(ctx context.Context, j plan.Job, l *loan) (string, error) {
	var damaged error
	here := filepath.Join(m.runner.Folder(j), train.CheckpointFile)
	if slices.Contains(j.Nodes, m.id.ID()) {
		_, err := os.Stat(here)
		if err == nil {
			if damaged = jobs.CheckModel(here); damaged == nil {
				return here, nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	var silent []string
	for _, id := range m.othersOf(j) {
		path, err := m.borrowModel(ctx, id, j, l)
		switch {
		case err == nil:
			if damaged = jobs.CheckModel(path); damaged == nil {
				return path, nil
			}
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, errKeeping):
			return "", m.noRoomFor(j, id, err)
		case mesh.RefusalOf(err) != reasonNotFound:
			silent = append(silent, fmt.Sprintf("node %s %v", nameOf(m.plan.State(), id), err))
		}
	}
	if damaged != nil && len(silent) == 0 {
		return "", api.Conflict("the model of job %s is damaged: start another job, and remove this one with `hopmesh train remove %s`; %v", j.ID, j.ID, damaged)
	}
	return "", m.noModel(j, silent)
}

// othersOf are the other nodes of a job that are in the mesh.
func (m *member) othersOf(j plan.Job) []string {
	members := m.plan.State().Members
	return slices.DeleteFunc(slices.Clone(j.Nodes), func(id string) bool {
		_, in := members[id]
		return !in || id == m.id.ID()
	})
}

func (m *member) borrowModel(ctx context.Context, id string, j plan.Job, l *loan) (string, error) {
	if !m.answers(id) {
		return "", errors.New("does not answer")
	}
	dir, err := l.folder()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errKeeping, err)
	}
	path := filepath.Join(dir, train.CheckpointFile)
	if err := m.fetchModel(ctx, id, j, path); err != nil {
		return "", fmt.Errorf("does not give it: %w", err)
	}
	return path, nil
}

// noRoomFor says that this node's own disk does not take the model that another has.
func (m *member) noRoomFor(j plan.Job, from string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p
	}
	other := nameOf(m.plan.State(), from)
	return api.Conflict("node %s can't keep the model of job %s, which it takes from node %s, on its own disk for a while: %v: free some space in its data directory, or ask node %s",
		m.id.Name(), j.ID, other, err, other)
}

// noModel says why there is no checkpoint to be had: silent are those of the job's
// nodes, with what they lack, that may have one.
func (m *member) noModel(j plan.Job, silent []string) error {
	s := m.plan.State()
	var names []string
	for _, id := range j.Nodes {
		names = append(names, nameOf(s, id))
	}
	on, is := "node "+strings.Join(names, " and "), "is"
	if len(names) > 1 {
		on, is = "nodes "+strings.Join(names, " and "), "are"
	}
	stayed := slices.ContainsFunc(j.Nodes, func(id string) bool { return s.Members[id].ID != "" })
	switch {
	case len(j.Nodes) == 0 && j.Ended():
		return api.Conflict("job %s was stopped before it began, so there is no model: `hopmesh train resume %s` lets it begin", j.ID, j.ID)
	case len(j.Nodes) == 0:
		return api.Conflict("job %s has not begun yet, so there is no model: `hopmesh train watch %s` shows when it has", j.ID, j.ID)
	case len(silent) > 0:
		return api.Conflict("the model of job %s is on %s, and can't be had now: %s; start that node again if it is down, or ask once more", j.ID, on, strings.Join(silent, "; "))
	case !stayed && j.State == plan.Done:
		return api.Conflict("the model of job %s was on %s, which %s no longer in the mesh, and went with it: start another job", j.ID, on, is)
	case !stayed:
		return api.Conflict("what job %s had learnt was on %s, which %s no longer in the mesh, and went with it: `hopmesh train resume %s` begins it anew on another", j.ID, on, is, j.ID)
	case j.Ended():
		return api.Conflict("job %s ended before it had a checkpoint, so there is no model: `hopmesh train show %s` says how it ended", j.ID, j.ID)
	}
	return api.Conflict("job %s has no checkpoint yet: one is written every few seconds, and when the job ends", j.ID)
}

// Predict writes what the job's model says of every vertex of its dataset.
func (b backend) Predict(ctx context.Context, id string, r api.PredictRequest, to io.Writer) error {
	return b.withModel(ctx, id, "prediction", r.Index, func(ctx context.Context, m *member, j plan.Job, file modelFile, l *loan) error {
		return m.predict(ctx, j, file, l, r, to)
	})
}

// ExportJob writes the model itself.
func (b backend) ExportJob(ctx context.Context, id string, r api.ExportRequest, to io.Writer) error {
	return b.withModel(ctx, id, "export", r.Index, func(_ context.Context, _ *member, _ plan.Job, file modelFile, _ *loan) error {
		return train.Export(to, file.checkpoint, file.index)
	})
}

// A modelFile is a checkpoint, which holds all models of a job, and which of them is meant.
type modelFile struct {
	checkpoint string
	index      int
}

// withModel does something with the model of a job. It ends with the member.
func (b backend) withModel(ctx context.Context, id, what string, asked *int, do func(context.Context, *member, plan.Job, modelFile, *loan) error) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	_, j, err := m.job(ctx, id)
	if err != nil {
		return err
	}
	index, err := modelIndex(j, asked)
	if err != nil {
		return err
	}
	ctx, done, err := m.imports.begin(ctx)
	if err != nil {
		return api.Unavailable("this node is stopping")
	}
	defer done()
	l := &loan{parent: m.dir.jobs(), job: filepath.Base(m.runner.Folder(j))}
	defer l.end(m)
	checkpoint, err := m.modelOfJob(ctx, j, l)
	if err == nil {
		err = do(ctx, m, j, modelFile{checkpoint, index}, l)
	}
	if _, said := errors.AsType[*api.Error](err); err == nil || said {
		return err
	}
	if ctx.Err() != nil {
		return api.Unavailable("the %s was interrupted", what)
	}
	return api.Conflict("%v", err)
}

// predict borrows the shards that are not here.
func (m *member) predict(ctx context.Context, j plan.Job, file modelFile, l *loan, r api.PredictRequest, to io.Writer) error {
	d, err := m.plan.State().DatasetOf(j)
	if err != nil {
		return api.Conflict("%s", withoutDataset(j, err))
	}
	lacking := map[int]bool{}
	var list []int
	for i := range d.Shards {
		if !d.Holds(m.id.ID(), i) {
			lacking[i] = true
			list = append(list, i)
		}
	}
	folder := m.runner.Folder(j)
	if len(list) > 0 || filepath.Dir(file.checkpoint) != folder {
		if folder, err = l.folder(); err == nil {
			err = m.keeper.Borrow(ctx, d.ID, list, folder)
		}
	}
	if err != nil {
		return err
	}
	shards, err := jobs.OpenShards(d, func(dataset string, shard int) string {
		if lacking[shard] {
			return filepath.Join(folder, graph.ShardFile(shard))
		}
		return m.shardFile(dataset, shard)
	})
	if err != nil {
		return err
	}
	defer jobs.CloseShards(shards)
	return jobs.Predict(ctx, jobs.Prediction{
		Model: file.checkpoint, Index: file.index, Shards: shards, Folder: folder, Memory: m.opts.Memory, Device: m.opts.computes(), Format: r.Format, Embeddings: r.Embeddings,
	}, to)
}
