package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/shards"
)

// outward wraps Peers and marks their failures, to distinguish them from the engine's.
type outward struct{ peer.Peers }

func (o outward) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	answer, err := o.Peers.Ask(ctx, node, q, buf)
	if err != nil && ctx.Err() == nil {
		err = &unanswered{err}
	}
	return answer, err
}

// way is the connection to the other nodes of a job in one generation.
type way struct {
	job        string
	generation uint64
	names      []string // of the nodes
	peers      peer.Peers
	hangUp     func(cause error)
	agreed     *agreed // how they share the job's epochs; nil: the plan does not say it
}

// meet connects to a job's other nodes, if there are any, or keeps the open connection.
// It does so as soon as this node knows of the generation. The other nodes then get the
// answer that it is not ready yet, and know that it is alive.
func (r *Runner) meet(s *plan.State, j plan.Job) {
	if r.way.job == j.ID && r.way.generation == j.Generation {
		return
	}
	r.part()
	if len(j.Nodes) < 2 {
		return
	}
	w := way{job: j.ID, generation: j.Generation}
	for _, id := range j.Nodes {
		w.names = append(w.names, s.Members[id].Name)
	}
	w.peers, w.hangUp = r.cfg.Peers(j, w.names, slices.Index(j.Nodes, r.cfg.Self))
	r.way = w
}

// part closes a connection that no run has taken and none needs any more.
func (r *Runner) part() {
	if r.way.hangUp != nil {
		r.way.hangUp(errStale)
	}
	r.way = way{}
}

var errOver = errors.New("the job is over here")

// leave releases what a run holds. It unmaps the shards only when nobody reads them any
// more.
func (r *run) leave(cause error) {
	if r.way.hangUp != nil {
		if cause == nil {
			cause = errOver
		}
		r.way.hangUp(cause)
	}
	r.held.end()
}

// openShards maps the shards that this node holds. If the job runs on this node alone,
// all of them must be here. Otherwise the entries of shards that other nodes hold are
// nil. All files that are of no use are found at once.
func (r *run) openShards(ctx context.Context) ([]*graph.Shard, error) {
	d := r.dataset
	if r.shared() && len(r.job.Owners) != len(d.Shards) {
		return nil, fmt.Errorf("the job was given to its nodes by a dataset of %d shards, and there is one of %d", len(r.job.Owners), len(d.Shards))
	}
	list := make([]*graph.Shard, len(d.Shards))
	var lost []*shards.Unusable
	for i := range d.Shards {
		owned := !r.shared() || r.job.Owners[i] == r.self
		if holds := d.Holds(r.cfg.Self, i); owned && r.shared() && !holds {
			CloseShards(list)
			return nil, errMoved
		} else if !owned && !holds {
			continue
		}
		s, err := r.held.open(ctx, r.cfg.Shard(d.ID, i), i)
		u, damaged := errors.AsType[*shards.Unusable](err)
		switch {
		case err == nil:
			list[i] = s
		case owned && damaged:
			lost = append(lost, u)
		case owned:
			CloseShards(list)
			return nil, unusable(d, i, err)
		default:
			r.cfg.Log.Debug("a copy can't be used, so its owner is asked", "dataset", d.Name, "shard", i, "err", err)
		}
	}
	if len(lost) > 0 {
		CloseShards(list)
		return nil, &LostShards{d.Name, lost}
	}
	return list, nil
}

// located adds to an error the node of the job on which it occurred, unless it occurs on
// all.
func (r *run) located(err error) error {
	if !r.shared() || train.Together(err) {
		return err
	}
	return fmt.Errorf("on node %s: %w", r.way.names[r.self], err)
}
