package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Device opens the device that a job computes on, for that job alone. A nil Device means
// the CPU.
type Device func(threads int) (tensor.Device, error)

// compute trains on the node's device or, once that has failed in this job, on the CPU. A
// job that only this node runs goes on at once from its last checkpoint. In a shared job
// the other nodes are at a different step by then, so all of them start a new generation.
func (r *run) compute(ctx context.Context, recipe recipe.Recipe, o train.Options) (train.Result, error) {
	announce := o.Announce
	for {
		o.Device = r.cfg.Device
		why := r.past.brokenDevice()
		if why != nil {
			o.Device = nil
			r.sight.lostDevice(why)
			o.Announce = func(f train.Forecast) {
				f.Notes = append([]string{fmt.Sprintf("%v: this node goes on with its processor", why)}, f.Notes...)
				announce(f)
			}
		}
		result, err := r.cfg.Train(ctx, recipe, r.held.shards, o)
		broken, is := errors.AsType[*slot.Broken](err)
		if !is || why != nil {
			return result, err
		}
		r.cfg.Log.Warn("the device of this node failed in a job, which goes on with the processor", "job", r.job.ID, "err", broken)
		r.past.breakDevice(broken)
		if r.shared() || ctx.Err() != nil {
			return result, err
		}
	}
}

// predict runs trained.Predict on a device. If the device fails, it starts over with the
// first row on the CPU.
func predict(ctx context.Context, p Prediction, o trained.PredictOptions, begin func(trained.Prediction) error, rows func(first int, values []float32) error) (err error) {
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err)
	defer mapped.CaughtAny(&err)
	o.Embeddings, o.Index, o.Device, o.Memory, o.Dir = p.Embeddings, p.Index, p.Device, p.Memory, p.Folder
	err = trained.Predict(ctx, p.Model, p.Shards, o, begin, rows)
	if _, broken := errors.AsType[*slot.Broken](err); broken && ctx.Err() == nil {
		o.Device = nil
		err = trained.Predict(ctx, p.Model, p.Shards, o, begin, rows)
	}
	return err
}

func (p *past) breakDevice(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = why
}

// brokenDevice returns the device's failure in the job, if it failed.
func (p *past) brokenDevice() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// Evaluate runs trained.Evaluate on a device. If the device fails, it starts over on the CPU.
func Evaluate(ctx context.Context, model string, shards []*graph.Shard, o trained.EvaluateOptions) (e *trained.Evaluation, err error) {
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err)
	defer mapped.CaughtAny(&err)
	e, err = trained.Evaluate(ctx, model, shards, o)
	if _, broken := errors.AsType[*slot.Broken](err); broken && ctx.Err() == nil {
		o.Device = nil
		e, err = trained.Evaluate(ctx, model, shards, o)
	}
	return e, err
}
