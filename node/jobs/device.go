package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Device opens what a job computes on, for itself alone; nil: the processor.
type Device func(threads int) (tensor.Device, error)

// compute trains on the node's device or, once that has failed in this job, on the
// processor. A job that is this node's alone goes on at once, from its last checkpoint:
// of one that it shares the others have done less or more than this node then, so that
// all begin anew.
func (r *run) compute(ctx context.Context, recipe train.Recipe, o train.Options) (train.Result, error) {
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
		result, err := r.cfg.Train(ctx, recipe, r.shards, o)
		broken, is := errors.AsType[*train.Broken](err)
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

// predict is train.Predict on a device or, where that fails, on the processor, which
// tells all rows again.
func predict(ctx context.Context, p Prediction, begin func(train.Prediction) error, rows func(first int, values []float32) error) error {
	o := train.Options{Device: p.Device, Memory: p.Memory, Dir: p.Folder}
	of := train.PredictOptions{Embeddings: p.Embeddings, Index: p.Index}
	err := train.Predict(ctx, p.Model, p.Shards, o, of, begin, rows)
	if _, broken := errors.AsType[*train.Broken](err); broken && ctx.Err() == nil {
		o.Device = nil
		err = train.Predict(ctx, p.Model, p.Shards, o, of, begin, rows)
	}
	return err
}

func (p *past) breakDevice(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = why
}

// brokenDevice is how the device failed in the job, if it did.
func (p *past) brokenDevice() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
