package model

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/shards"
)

// datasetOf returns the dataset of that name or, if it is "", that of a job.
func (m *Models) datasetOf(j plan.Job, name string) (plan.Dataset, error) {
	if name == "" {
		return m.cfg.Dataset(j)
	}
	s := m.cfg.Plan.State()
	d, ok := s.DatasetByName(name)
	if !ok {
		return d, api.NotFound("%s", api.NoDataset(name))
	}
	if d.Stage != plan.Ready {
		return d, api.Conflict("dataset %s is still being imported by node %s: ask again when it is ready", d.Name, s.NameOf(d.Importer))
	}
	if err := requests.Reads(j, d); err != nil {
		return d, api.Conflict("%v", err)
	}
	return d, nil
}

// reading is a dataset while a request reads it.
type reading struct {
	shards []*graph.Shard // all, in order
	folder string         // for temporary files
	// intact returns an error if shards have changed since they were opened.
	intact func(ctx context.Context) error
}

// reading calls do with all shards of a dataset: of this node, and borrowed ones.
func (m *Models) reading(ctx context.Context, d plan.Dataset, j plan.Job, file modelFile, l *loan, do func(reading) error) error {
	lacking := map[int]bool{}
	var list []int
	bytes := uint64(0)
	for i := range d.Shards {
		holds := d.Holds(m.cfg.Mesh.ID(), i)
		if holds {
			err := m.cfg.Shards.Confirm(ctx, d.ID, i, nil)
			if _, lost := errors.AsType[*shards.Unusable](err); lost {
				holds = false // another node's is taken
			} else if err != nil {
				return err
			}
		}
		if !holds {
			lacking[i] = true
			list = append(list, i)
			bytes += d.Shards[i].Bytes
		}
	}
	folder := m.cfg.Runner.Folder(j)
	var err error
	if len(list) > 0 || filepath.Dir(file.checkpoint) != folder {
		if folder, err = l.folder(); err == nil {
			err = m.fits(folder, d.Name, len(list), bytes)
		}
		if err == nil {
			err = m.cfg.Shards.Borrow(ctx, d.ID, list, folder)
		}
	}
	if err != nil {
		return err
	}
	files, err := jobs.OpenShards(d, func(dataset string, shard int) string {
		if lacking[shard] {
			return filepath.Join(folder, graph.ShardFile(shard))
		}
		return m.cfg.ShardFile(dataset, shard)
	})
	if err != nil {
		return err
	}
	defer jobs.CloseShards(files)
	return do(reading{files, folder, func(ctx context.Context) error {
		for i, s := range files {
			if lacking[i] {
				continue
			}
			if err := m.cfg.Shards.Confirm(ctx, d.ID, i, s.Info()); err != nil {
				return fmt.Errorf("shard %d of dataset %s changed while it was read, so the result is of no use: ask once more: %w", i, d.Name, err)
			}
		}
		return nil
	}})
}
