package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
)

// reservation keeps a name for the node that asks.
type reservation struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

// holding lists shards of one dataset that a node has, or has lost.
type holding struct {
	ID     string `json:"id"`
	Shards []int  `json:"shards"`
}

type removal struct {
	Name string `json:"name"`
	// Force removes it even if jobs that have ended need it.
	Force bool `json:"force,omitempty"`
}

// orders holds the orders about datasets. Each is a field, which any node does, and a method,
// which the leader runs.
type orders struct {
	leader *lead.Orders
	plan   Plan
	log    *slog.Logger

	reserve       *lead.Order[reservation, lead.Index]
	define        *lead.Order[plan.DefineDataset, lead.Index]
	giveUp, abort *lead.Order[string, lead.Index]
	remove        *lead.Order[removal, lead.Index]
	hold, lose    *lead.Order[holding, lead.Index]
}

func newOrders(o *lead.Orders, p Plan, log *slog.Logger) *orders {
	d := &orders{leader: o, plan: p, log: log}
	d.reserve = lead.Register(o, "reserve-dataset", lead.Once, d.onReserve)
	d.define = lead.Register(o, "define-dataset", lead.Once, d.onDefine)
	d.giveUp = lead.Register(o, "give-up-dataset", lead.Once, d.onGiveUp)
	d.abort = lead.Register(o, "abort-dataset", lead.Once, d.onAbort)
	d.remove = lead.Register(o, "remove-dataset", lead.Once, d.onRemove)
	d.hold = lead.Register(o, "hold-shards", lead.Once, d.onHold)
	d.lose = lead.Register(o, "lose-shards", lead.Once, d.onLose)
	return d
}

// Hold records that this node has shards, for the keeper.
func (o *orders) Hold(ctx context.Context, dataset string, list []int) (uint64, error) {
	index, err := o.hold.Do(ctx, holding{ID: dataset, Shards: list})
	return uint64(index), err
}

// Lose records that this node has lost shards, for the keeper.
func (o *orders) Lose(ctx context.Context, dataset string, list []int) (uint64, error) {
	index, err := o.lose.Do(ctx, holding{ID: dataset, Shards: list})
	return uint64(index), err
}

// Index returns the index of the leader's plan.
func (o *orders) Index(ctx context.Context) (uint64, error) { return o.leader.Index(ctx) }

// onReserve keeps a name for the node that asks.
func (o *orders) onReserve(ctx context.Context, from string, r reservation) (lead.Index, error) {
	s, err := o.plan.Apply(ctx, plan.ReserveDataset{ID: r.ID, Name: r.Name, Importer: from, Replicas: r.Replicas})
	switch {
	case errors.Is(err, plan.ErrDatasetTaken):
		return 0, o.taken(r.Name)
	case errors.Is(err, plan.ErrDatasetsFull):
		return 0, mesh.Refuse(lead.Conflict, "%v", plan.ErrDatasetsFull)
	case errors.Is(err, plan.ErrInvalid):
		return 0, mesh.Refuse(lead.Invalid, "%v", err)
	case err != nil:
		return 0, err
	}
	return lead.Index(s.Index), nil
}

// taken returns the refusal of a name that is in use.
func (o *orders) taken(name string) error {
	s := o.plan.State()
	d, ok := s.DatasetByName(name)
	if ok && d.Stage != plan.Ready {
		return mesh.Refuse(lead.Conflict, "node %s is importing a dataset %s just now: wait for it, choose another name, or stop it with `hopmesh dataset remove %s`",
			s.NameOf(d.Importer), name, name)
	}
	return mesh.Refuse(lead.Conflict, "there is a dataset %s already: choose another name, or remove it with `hopmesh dataset remove %s`", name, name)
}

// onDefine records what the importer has made.
func (o *orders) onDefine(ctx context.Context, from string, c plan.DefineDataset) (lead.Index, error) {
	c.Importer = from
	s, err := o.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return 0, mesh.Refuse(lead.NotFound, "the dataset was removed while it was being imported")
	case errors.Is(err, plan.ErrNotImporting), errors.Is(err, plan.ErrDatasetsFull):
		return 0, mesh.Refuse(lead.Conflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return 0, mesh.Refuse(lead.Invalid, "%v", err)
	case err != nil:
		return 0, err
	}
	o.plan.Hint()
	return lead.Index(s.Index), nil
}

// onHold records that a node has shards.
func (o *orders) onHold(ctx context.Context, from string, h holding) (lead.Index, error) {
	return o.changeShards(ctx, plan.HoldShards{ID: h.ID, Node: from, Shards: h.Shards})
}

// onLose records that a node has lost shards.
func (o *orders) onLose(ctx context.Context, from string, h holding) (lead.Index, error) {
	defer o.plan.Hint()
	return o.changeShards(ctx, plan.LoseShards{ID: h.ID, Node: from, Shards: h.Shards})
}

func (o *orders) changeShards(ctx context.Context, c plan.Command) (lead.Index, error) {
	s, err := o.plan.Apply(ctx, c)
	if errors.Is(err, plan.ErrNoDataset) || errors.Is(err, plan.ErrUndefined) || errors.Is(err, plan.ErrNoMember) {
		return lead.Index(o.plan.State().Index), nil // the node has yet to read what became of the dataset
	}
	if err != nil {
		return 0, err
	}
	return lead.Index(s.Index), nil
}

// onGiveUp removes a dataset that its importer no longer imports. A dataset that is
// further than the importer knows stays.
func (o *orders) onGiveUp(ctx context.Context, from, id string) (lead.Index, error) {
	if d, in := o.plan.State().Datasets[id]; !in || d.Stage != plan.Importing || d.Importer != from {
		return lead.Index(o.plan.State().Index), nil
	}
	return o.forget(ctx, id)
}

// onAbort removes a dataset whose import failed, or was cancelled.
func (o *orders) onAbort(ctx context.Context, from, id string) (lead.Index, error) {
	d, in := o.plan.State().Datasets[id]
	if !in {
		return lead.Index(o.plan.State().Index), nil
	}
	if d.Importer != from {
		return 0, mesh.Refuse(lead.Conflict, "only the node that imports a dataset may give it up")
	}
	return o.forget(ctx, id)
}

// onRemove removes a dataset on an operator's request.
func (o *orders) onRemove(ctx context.Context, _ string, r removal) (lead.Index, error) {
	s, name := o.plan.State(), r.Name
	d, in := s.DatasetByName(name)
	if !in {
		return 0, mesh.Refuse(lead.NotFound, "%s", api.NoDataset(name))
	}
	if on := s.JobsOn(d.ID); len(on) > 0 && len(s.JobsOf(d.ID)) == 0 && !r.Force {
		return 0, mesh.Refuse(lead.Conflict, "%s; `hopmesh dataset remove %s --force` removes it all the same", stillNeeds(on, name), name)
	}
	index, err := o.forget(ctx, d.ID)
	if err == nil {
		o.log.Info("removed a dataset on request", "dataset", name)
	}
	return index, err
}

// stillNeeds words which jobs that have ended need a dataset.
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

func (o *orders) forget(ctx context.Context, id string) (lead.Index, error) {
	s, err := o.plan.Apply(ctx, plan.RemoveDataset{ID: id})
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return lead.Index(o.plan.State().Index), nil
	case errors.Is(err, plan.ErrDatasetInUse):
		return 0, o.inUse(id)
	case err != nil:
		return 0, err
	}
	return lead.Index(s.Index), nil
}

// inUse returns the refusal to remove a dataset that jobs need.
func (o *orders) inUse(id string) error {
	s := o.plan.State()
	name, ids := s.Datasets[id].Name, s.JobsOf(id)
	if len(ids) == 1 {
		return mesh.Refuse(lead.Conflict, "job %s needs dataset %s: wait until it has ended, or stop it with `hopmesh train stop %s`", ids[0], name, ids[0])
	}
	return mesh.Refuse(lead.Conflict, "jobs %s need dataset %s: wait until they have ended, or stop them with `hopmesh train stop`", strings.Join(ids, ", "), name)
}
