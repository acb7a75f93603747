package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// A mesh is the nodes that stay. One goroutine uses it.
type mesh struct {
	run     *bench.Run
	daemons []*bench.Daemon
	source  string // the folder of the graph that is imported
}

func name(node int) string { return fmt.Sprint("n", node+1) }

func begin(ctx context.Context, run *bench.Run) (m *mesh, err error) {
	m = &mesh{run: run}
	defer func() {
		if err != nil {
			m.end()
		}
	}()
	if m.source, err = files(run.Dir); err != nil {
		return nil, err
	}
	for i := range nodes {
		enter := []string{"--bootstrap"}
		if i > 0 {
			if enter, err = m.invitation(ctx); err != nil {
				return nil, err
			}
		}
		d, err := run.Launch(ctx, name(i), enter...)
		if err != nil {
			return nil, err
		}
		m.daemons = append(m.daemons, d)
	}
	_, err = m.daemons[0].GenerateDataset(ctx, stays(), func(api.DatasetEvent) {})
	return m, err
}

func (m *mesh) end() {
	for _, d := range m.daemons {
		d.Stop()
	}
}

// invitation returns the arguments by which a node joins.
func (m *mesh) invitation(ctx context.Context) ([]string, error) {
	token, err := m.daemons[0].CreateToken(ctx, time.Hour, 1)
	if err != nil {
		return nil, err
	}
	members, err := m.daemons[0].Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range members {
		if of.Name == name(0) {
			return []string{"--join", of.Address, "--token", token.Token}, nil
		}
	}
	return nil, errors.New("the founder is not in its own list")
}

// round does what the protocol says of a round, except for reading.
func (m *mesh) round(ctx context.Context, round int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("round %d is not done within %s", round, patience))
	defer cancel()
	on := m.daemons[round%nodes]
	if err := train(ctx, on.Client, round); err != nil {
		return fmt.Errorf("train with %s: %w", strategy(round), err)
	}
	if err := m.graph(ctx, on.Client, round); err != nil {
		return fmt.Errorf("make a graph: %w", err)
	}
	if round%joins == joins-1 {
		if err := m.guest(ctx, round); err != nil {
			return fmt.Errorf("join and leave: %w", err)
		}
	}
	return nil
}

func train(ctx context.Context, on *api.Client, round int) error {
	id, err := on.StartJob(ctx, job(round))
	if err != nil {
		return err
	}
	j, err := on.WatchJob(ctx, id.ID, func(api.JobEvent) {})
	if err != nil {
		return err
	}
	if j.State != "done" {
		return fmt.Errorf("the job is %s: %s", j.State, j.Error)
	}
	return on.RemoveJob(ctx, id.ID)
}

func (m *mesh) graph(ctx context.Context, on *api.Client, round int) (err error) {
	g := goes(round)
	if round%imports == imports-1 {
		_, err = on.ImportDataset(ctx, api.ImportRequest{Name: g.Name, Source: m.source, DatasetOptions: api.DatasetOptions{Shards: 6}}, func(api.DatasetEvent) {})
	} else {
		_, err = on.GenerateDataset(ctx, g, func(api.DatasetEvent) {})
	}
	if err != nil {
		return err
	}
	return on.RemoveDataset(ctx, g.Name, false)
}

// guest has a node join, own shards, and leave.
func (m *mesh) guest(ctx context.Context, round int) error {
	enter, err := m.invitation(ctx)
	if err != nil {
		return err
	}
	as := fmt.Sprint("guest-", round)
	d, err := m.run.Launch(ctx, as, enter...)
	if err != nil {
		return err
	}
	defer func() {
		d.Stop()
		d.Close()
		_ = os.RemoveAll(filepath.Join(m.run.Dir, as)) // the whole folder is removed in the end
	}()
	for {
		list, err := m.daemons[0].Members(ctx)
		if err != nil {
			return err
		}
		for _, of := range list {
			if of.Name == as && of.Shards > 0 {
				return d.Leave(ctx)
			}
		}
		if err := bench.Pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait until it owns shards: %w", err)
		}
	}
}

// read reads all nodes.
func (m *mesh) read(ctx context.Context) (list []Reading, err error) {
	if err := bench.Pause(ctx, rest); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, d := range m.daemons {
		r, err := read(ctx, d.PID(), filepath.Join(m.run.Dir, name(i)))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}
