package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

// This file is the leader's part of operations on datasets. Those that change the
// plan answer with its index, so that who asked can wait until it has read that.

type reserveOrder struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

type shardsOrder struct {
	ID     string `json:"id"`
	Shards []int  `json:"shards"`
}

type removeOrder struct {
	Name string `json:"name"`
	// Force also takes it from jobs that have ended.
	Force bool `json:"force,omitempty"`
}

// leaderReserve keeps a name for the node that asks.
func (m *member) leaderReserve(ctx context.Context, o reserveOrder, from string) (uint64, error) {
	s, err := m.plan.Apply(ctx, plan.ReserveDataset{ID: o.ID, Name: o.Name, Importer: from, Replicas: o.Replicas})
	switch {
	case errors.Is(err, plan.ErrDatasetTaken):
		return 0, m.taken(o.Name)
	case errors.Is(err, plan.ErrDatasetsFull):
		return 0, mesh.Refuse(reasonConflict, "%v", plan.ErrDatasetsFull)
	case errors.Is(err, plan.ErrInvalid):
		return 0, mesh.Refuse(reasonInvalid, "%v", err)
	case err != nil:
		return 0, err
	}
	return s.Index, nil
}

// taken says who has the name.
func (m *member) taken(name string) error {
	s := m.plan.State()
	d, ok := s.DatasetByName(name)
	if ok && d.Stage != plan.Ready {
		return mesh.Refuse(reasonConflict, "node %s is importing a dataset %s just now: wait for it, choose another name, or stop it with `hopmesh dataset remove %s`",
			nameOf(s, d.Importer), name, name)
	}
	return mesh.Refuse(reasonConflict, "there is a dataset %s already: choose another name, or remove it with `hopmesh dataset remove %s`", name, name)
}

// leaderDefine takes what the importer has made.
func (m *member) leaderDefine(ctx context.Context, c plan.DefineDataset, from string) (uint64, error) {
	c.Importer = from
	s, err := m.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return 0, mesh.Refuse(reasonNotFound, "the dataset was removed while it was being imported")
	case errors.Is(err, plan.ErrNotImporting), errors.Is(err, plan.ErrDatasetsFull):
		return 0, mesh.Refuse(reasonConflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return 0, mesh.Refuse(reasonInvalid, "%v", err)
	case err != nil:
		return 0, err
	}
	m.plan.Hint()
	return s.Index, nil
}

// leaderHold takes a node's word that it has shards.
func (m *member) leaderHold(ctx context.Context, o shardsOrder, from string) (uint64, error) {
	return m.changeShards(ctx, plan.HoldShards{ID: o.ID, Node: from, Shards: o.Shards})
}

// leaderLose takes a node's word that it has them no more.
func (m *member) leaderLose(ctx context.Context, o shardsOrder, from string) (uint64, error) {
	defer m.plan.Hint()
	return m.changeShards(ctx, plan.LoseShards{ID: o.ID, Node: from, Shards: o.Shards})
}

func (m *member) changeShards(ctx context.Context, c plan.Command) (uint64, error) {
	s, err := m.plan.Apply(ctx, c)
	if errors.Is(err, plan.ErrNoDataset) || errors.Is(err, plan.ErrUndefined) || errors.Is(err, plan.ErrNoMember) {
		return m.plan.State().Index, nil // it has yet to read what became of the dataset
	}
	if err != nil {
		return 0, err
	}
	return s.Index, nil
}

// leaderGiveUp forgets a dataset that its importer no longer imports. One that is
// further than the importer knows stays.
func (m *member) leaderGiveUp(ctx context.Context, id, from string) (uint64, error) {
	if d, in := m.plan.State().Datasets[id]; !in || d.Stage != plan.Importing || d.Importer != from {
		return m.plan.State().Index, nil
	}
	return m.forgetDataset(ctx, id)
}

// leaderAbort forgets a dataset whose import ends before it is ready, or was not
// waited for.
func (m *member) leaderAbort(ctx context.Context, id, from string) (uint64, error) {
	d, in := m.plan.State().Datasets[id]
	if !in {
		return m.plan.State().Index, nil
	}
	if d.Importer != from {
		return 0, mesh.Refuse(reasonConflict, "only the node that imports a dataset may give it up")
	}
	return m.forgetDataset(ctx, id)
}

// leaderRemove forgets a dataset on an operator's word.
func (m *member) leaderRemove(ctx context.Context, o removeOrder) (uint64, error) {
	s, name := m.plan.State(), o.Name
	d, in := s.DatasetByName(name)
	if !in {
		return 0, mesh.Refuse(reasonNotFound, "%s", noDataset(name))
	}
	if on := s.JobsOn(d.ID); len(on) > 0 && len(s.JobsOf(d.ID)) == 0 && !o.Force {
		return 0, mesh.Refuse(reasonConflict, "%s; `hopmesh dataset remove %s --force` removes it all the same", stillNeeds(on, name), name)
	}
	index, err := m.forgetDataset(ctx, d.ID)
	if err == nil {
		m.log.Info("removed a dataset on request", "dataset", name)
	}
	return index, err
}

// stillNeeds says what becomes of jobs that have ended without their dataset.
func stillNeeds(on []plan.Job, name string) string {
	others := ""
	if n := len(on) - 1; n > 0 {
		others = fmt.Sprintf(", as do %d others", n)
	}
	if len(on) == 2 {
		others = ", as does another"
	}
	return fmt.Sprintf("job %s needs dataset %s to predict or to go on%s: remove what is of no more use with `hopmesh train remove %s`", on[0].ID, name, others, on[0].ID)
}

func (m *member) forgetDataset(ctx context.Context, id string) (uint64, error) {
	s, err := m.plan.Apply(ctx, plan.RemoveDataset{ID: id})
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return m.plan.State().Index, nil
	case errors.Is(err, plan.ErrDatasetInUse):
		return 0, m.inUse(id)
	case err != nil:
		return 0, err
	}
	return s.Index, nil
}

// inUse says which jobs need a dataset.
func (m *member) inUse(id string) error {
	s := m.plan.State()
	name, ids := s.Datasets[id].Name, s.JobsOf(id)
	if len(ids) == 1 {
		return mesh.Refuse(reasonConflict, "job %s needs dataset %s: wait until it has ended, or stop it with `hopmesh train stop %s`", ids[0], name, ids[0])
	}
	return mesh.Refuse(reasonConflict, "jobs %s need dataset %s: wait until they have ended, or stop them with `hopmesh train stop`", strings.Join(ids, ", "), name)
}
