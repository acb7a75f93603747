package train

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// NewBatches makes the batches of a run.
func NewBatches(t *Trainer, slots, workers int) (*slot.Batches, error) {
	full := !slices.ContainsFunc(t.sampling().Fanouts, func(k int) bool { return k > 0 })
	return slot.NewBatches(t.Data.Training, t.Recipe.Batch, t.Recipe.Seed, full, slots, workers, func() (*slot.Worker, error) { return newWorker(t) }, func() slot.Preparer { return t.Method })
}

// newWorker makes a worker with a device of its own.
func newWorker(t *Trainer) (*slot.Worker, error) {
	device, err := t.newWorkerDevice()
	if err != nil {
		return nil, err
	}
	h, o := &slot.Worker{Data: t.Data, Device: device}, t.sampling()
	if x := t.Session; !x.Replica.Replicated && !t.described().Isolated {
		h.Far = frontier.New(x.Peers, x.Work, x.Layout)
		o.Far = h.Far
	}
	h.Sampler = sample.New(t.Data.Topology, o)
	if h.Scratch, err = device.NewArena(0); err != nil {
		device.Close()
	}
	return h, err
}
