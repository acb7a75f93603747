package train

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// NewBatches makes the batches of a run.
func NewBatches(t *Trainer, slots, workers int) *slot.Batches {
	full := !slices.ContainsFunc(t.sampling().Fanouts, func(k int) bool { return k > 0 })
	return slot.NewBatches(t.Data.Training, t.Recipe.Batch, t.Recipe.Seed, full, slots, workers, func() (*slot.Worker, error) { return newWorker(t) }, func() slot.Preparer { return t.Method })
}

// NewLooker makes what counts the sizes of steps.
func NewLooker(t *Trainer) *slot.Looker {
	h, o := &slot.Looker{}, t.sampling()
	if h.Far = newFrontier(t); h.Far != nil {
		o.Far, o.Inverses = h.Far, h.Far.Inverses
	}
	h.Counter = sample.NewCounter(t.Data.Topology, o)
	// Each entry and each source takes four bytes at least: what is beyond does not fit.
	h.Counter.Most = int(min(budget.Left(t.Options.Memory, 0)/2, math.MaxInt))
	return h
}

// newFrontier returns what asks other nodes for edges; nil: there is no need.
func newFrontier(t *Trainer) *frontier.Frontier {
	x := t.Session
	if x.Replica.Replicated || t.described().Isolated {
		return nil
	}
	f := frontier.New(x.Peers, x.Work, x.Layout)
	f.Edges = t.Data.About.Edges
	return f
}

// newWorker makes a worker with a device of its own.
func newWorker(t *Trainer) (*slot.Worker, error) {
	device, err := t.newWorkerDevice()
	if err != nil {
		return nil, err
	}
	h, o := &slot.Worker{Data: t.Data, Device: device}, t.sampling()
	if h.Far = newFrontier(t); h.Far != nil {
		o.Far, o.Inverses = h.Far, h.Far.Inverses
	}
	h.Sampler = sample.New(t.Data.Topology, o)
	if h.Scratch, err = device.NewArena(0); err != nil {
		device.Close()
	}
	return h, err
}
