package train

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// openDevice opens the device that passes run on: the CPU where the strategy computes
// there alone.
func (t *Trainer) openDevice() (err error) {
	if t.Device, err = slot.Open(t.Options.Device, t.Options.Threads); err != nil {
		return err
	}
	t.Foreign, _ = t.Device.(tensor.Foreign)
	if d := t.Options.Strategies.Of(t.Recipe.Sharing.Strategy); t.Foreign != nil && (d.Processor || t.Recipe.Embeddings > 0) {
		what := d.Name
		if !d.Processor {
			what = "a job with {train.embeddings}"
		}
		t.Notes = append(t.Notes, fmt.Sprintf("%s is computed on the processor, and not on the device %s", what, t.Device.Name()))
		t.Device.Close()
		t.Options.Device, t.Foreign = nil, nil
		t.Device = cpu.New(t.Options.Threads)
	}
	t.products, _ = t.Device.(rounding)
	t.asks, _ = t.Device.(tensor.Teller)
	if t.Foreign != nil {
		t.Device = slot.Lend(t.Foreign)
	}
	return nil
}

// newWorkerDevice opens a device of one thread in the host's memory, for work beside
// the passes.
func (t *Trainer) newWorkerDevice() (tensor.Device, error) {
	if t.Foreign != nil || t.Options.Device == nil {
		return cpu.New(1), nil
	}
	return t.Options.Device(1)
}

// limited is a device that reports how much of its memory is left.
type limited interface{ Free() (free, total uint64) }

// Fault returns an error if the device has failed, in a step of an epoch or, with 0,
// after the last one. Until it has been called, nothing that was read of the device may
// be sent to another node or written to disk.
func (t *Trainer) Fault(epoch, step int) error {
	if t.Foreign == nil {
		return nil
	}
	if err := t.Foreign.Err(); err != nil {
		return &slot.Broken{Device: t.Foreign.Name(), Epoch: epoch, Step: step, Err: err}
	}
	return nil
}

// Fault is Trainer.Fault in the next step of a learner.
func (t *Learner) Fault() error {
	step := t.At.Step + 1
	if t.Run.Batches != nil && t.At.Step == t.Run.Batches.Steps {
		step = 0
	}
	return t.Run.Fault(t.At.Epoch, step)
}

// Ask makes a device that can answer at the end of a pass return its loss and whether
// it is finite all at once. Answers returns these, and until then nobody waits.
func (t *Trainer) Ask() {
	if t.asks != nil {
		t.asks.Ask()
	}
}

// Answers returns what the device has answered since Ask, or else what was passed.
func (t *Trainer) Answers(loss float64, finite bool) (float64, bool) {
	if t.asks == nil {
		return loss, finite
	}
	sum, _, sound := t.asks.Told()
	return sum, sound
}

// ErrFront ends a run on a device when auto chooses p3, which runs on the CPU.
var ErrFront = errors.New("p3 was chosen, which is computed on the processor")

// Free returns the device memory that this run has or can still get, but for weights.
func (t *Trainer) Free(l limited) (free, total uint64) {
	free, total = l.Free()
	free -= free / 16 // kept by the device, and lost between arenas
	return free + t.Batches.There(t.Uploader, t.Work), total
}

// room bounds inference by the device memory that is left.
func (t *Trainer) room(n *Needs) {
	if l, ok := t.Foreign.(limited); ok {
		free, _ := t.Free(l)
		n.Inference.May = free - min(free, n.OnDevice())
	}
}

// AffordDevice returns an error if a run needs more device memory than is free.
func (t *Trainer) AffordDevice(n *Needs) error {
	l, ok := t.Foreign.(limited)
	if !ok {
		return nil
	}
	free, total := t.Free(l)
	if err := fit.OnDevice(n, free, total); err != nil {
		return &slot.Broken{Device: t.Foreign.Name(), Err: err}
	}
	return nil
}
