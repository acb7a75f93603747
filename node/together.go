package node

import (
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

// togetherOf is an epoch of one model of a sweep with what it took of all of them: what is
// sampled and gathered once for all is told with the first that trained in it.
func togetherOf(j plan.Job, e plan.Epoch) api.JobEpoch {
	a := epochOf(e)
	for model := range j.Bests {
		if model == e.Model {
			continue
		}
		if other, trained := j.EpochAt(e.Epoch, model); trained {
			addEpoch(&a, epochOf(other))
		}
	}
	return a
}

// addEpoch adds what an epoch took of another model, which trained in turn with this one.
func addEpoch(e *api.JobEpoch, o api.JobEpoch) {
	e.Seconds += o.Seconds
	e.Phases.Sample += o.Phases.Sample
	e.Phases.Gather += o.Phases.Gather
	e.Phases.Compute += o.Phases.Compute
	e.Phases.Reduce += o.Phases.Reduce
	e.Phases.Wait += o.Phases.Wait
	e.Rows.Local += o.Rows.Local
	e.Rows.Remote += o.Rows.Remote
	e.Requests.Feature += o.Requests.Feature
	e.Requests.Topology += o.Requests.Topology
	e.Requests.Activation += o.Requests.Activation
	e.Requests.Gradient += o.Requests.Gradient
	addBytes(&e.Bytes, o.Bytes)
	if e.Eval != nil && o.Eval != nil {
		e.Eval.Seconds += o.Eval.Seconds
		addBytes(&e.Eval.Bytes, o.Eval.Bytes)
	}
}

func addBytes(b *api.JobBytes, o api.JobBytes) {
	b.Feature += o.Feature
	b.Topology += o.Topology
	b.Model += o.Model
	b.Gradient += o.Gradient
	b.Activation += o.Activation
	b.Shard += o.Shard
	b.Control += o.Control
}
