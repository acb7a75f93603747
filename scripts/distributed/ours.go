package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/shape"
)

// A mesh is our nodes on the sites of a field. They are started for each of our runs, so that all
// runs begin alike and nothing of ours runs beside theirs. Their folders stay.
type mesh struct {
	setup
	program string
	folder  string
}

// copies returns what numbers of copies beside the owner's the cells of a graph on so many nodes
// have. They share a mesh.
func (s setup) copies() (list []int) {
	for _, c := range append(cells(), loaderCells()...) {
		if n := min(c.side.copies, s.nodes-1); c.data == s.data && c.nodes == s.nodes && c.side.framework == "" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// with starts all nodes, calls do, and stops them. New nodes are given the datasets first.
func (m *mesh) with(ctx context.Context, field *shape.Field, do func(*shape.Crew) error) (err error) {
	// Datasets are there or not, all of them: a file says so.
	made := filepath.Join(m.folder, "made")
	if _, err := os.Stat(made); errors.Is(err, fs.ErrNotExist) {
		if err := m.found(ctx, field); err != nil {
			return err
		}
		if err := os.WriteFile(made, nil, 0o600); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	crew, err := field.StartSome(ctx, 0, m.program, m.folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	for i := range m.nodes {
		if err := crew.Begin(ctx, i); err != nil {
			return err
		}
	}
	if err := errors.Join(together(ctx, crew), tidy(ctx, crew)); err != nil {
		return err
	}
	return do(crew)
}

// tidy removes the jobs that a run has left which was interrupted. They would go on, and the next job
// would wait for them.
func tidy(ctx context.Context, crew *shape.Crew) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("jobs of a run that was interrupted can't be removed"))
	defer cancel()
	on := crew.Nodes[0].API
	for {
		list, err := on.Jobs(ctx)
		if err == nil && len(list) == 0 {
			return nil
		}
		for _, j := range list {
			// A job that is still ending can't be removed yet: the next round does.
			if on.StopJob(ctx, j.ID) == nil {
				_ = on.RemoveJob(ctx, j.ID)
			}
		}
		if err := bench.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// found makes new nodes, generates the datasets, and stops the nodes.
func (m *mesh) found(ctx context.Context, field *shape.Field) (err error) {
	if err := os.RemoveAll(m.folder); err != nil {
		return err
	}
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return err
	}
	crew, err := field.Start(ctx, m.program, m.folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	if err := together(ctx, crew); err != nil {
		return err
	}
	for _, copies := range m.copies() {
		if _, err := crew.Nodes[0].API.GenerateDataset(ctx, m.data.request(copies), func(api.DatasetEvent) {}); err != nil {
			return err
		}
	}
	return nil
}

// together waits until the nodes of a mesh see each other.
func together(ctx context.Context, crew *shape.Crew) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the nodes take too long to see each other"))
	defer cancel()
	for {
		here := 0
		if list, err := crew.Nodes[0].API.Members(ctx); err == nil {
			for _, m := range list {
				if m.Status == "alive" {
					here++
				}
			}
		}
		ready := 0
		for _, p := range crew.Nodes {
			if s, err := p.API.Status(ctx); err == nil && s.Ready {
				ready++
			}
		}
		if here == len(crew.Nodes) && ready == len(crew.Nodes) {
			return nil
		}
		if err := bench.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// train runs a cell's job.
func (m *mesh) train(ctx context.Context, field *shape.Field, c cell) (r run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	defer cancel()
	err = m.with(ctx, field, func(crew *shape.Crew) error {
		var pids []int
		for _, p := range crew.Nodes {
			pids = append(pids, p.PID())
		}
		meter := newMeter(ctx, pids, func() []int { return pids })
		defer meter.halt()
		if err := meter.mark(); err != nil {
			return err
		}
		on := crew.Nodes[0].API
		id, err := on.StartJob(ctx, c.request())
		if err != nil {
			return err
		}
		var failed error
		j, err := on.WatchJob(ctx, id.ID, func(e api.JobEvent) {
			if e.Epoch != nil {
				failed = errors.Join(failed, meter.mark())
			}
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		meter.end(&r)
		if err := fill(&r, j, c.epochs); err != nil {
			return err
		}
		return on.RemoveJob(ctx, id.ID)
	})
	return r, err
}

// fill takes from a job what it says of itself.
func fill(r *run, j api.Job, epochs int) error {
	if j.State != "done" || len(j.History) != epochs {
		return fmt.Errorf("job %s is %s after %d epochs: %s", j.ID, j.State, len(j.History), j.Error)
	}
	for _, e := range j.History {
		r.Seconds = append(r.Seconds, e.Seconds)
	}
	end := j.History[epochs-1]
	if end.TestAccuracy == nil {
		return fmt.Errorf("job %s has no test accuracy", j.ID)
	}
	r.Accuracy, r.Chosen = *end.TestAccuracy, end.Strategy
	return nil
}

// owned returns the files of a dataset's shards and the nodes that own them, numbered from 0.
func owned(crew *shape.Crew, d api.Dataset) (files []string, owners []int, err error) {
	for _, s := range d.Shards {
		owner := slices.IndexFunc(crew.Nodes, func(p *shape.Process) bool { return p.Name == s.Owner })
		if owner < 0 {
			return nil, nil, fmt.Errorf("shard %d of %s has no owner", s.ID, d.Name)
		}
		file, err := shardIn(crew.Nodes[owner].Folder, s)
		if err != nil {
			return nil, nil, err
		}
		files, owners = append(files, file), append(owners, owner)
	}
	return files, owners, nil
}

// shardIn finds a shard's file in a node's folder.
func shardIn(folder string, s api.DatasetShard) (found string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != graph.ShardFile(s.ID) {
			return err
		}
		// Datasets that differ in their copies have equal files.
		if info, err := d.Info(); err == nil && uint64(info.Size()) == s.Bytes {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && found == "" {
		err = fmt.Errorf("%s has no file of shard %d", folder, s.ID)
	}
	return found, err
}
