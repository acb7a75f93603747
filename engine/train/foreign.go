package train

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Broken is how a run ends whose device can't go on: what it has made since is worth
// nothing, and the checkpoint of before is left as it was. The processor can go on from
// that.
type Broken struct {
	Device      string
	Epoch, Step int // from 1; 0: before the first epoch, or between two steps
	err         error
}

func (e *Broken) Error() string {
	switch {
	case e.Epoch == 0:
		return fmt.Sprintf("the device %s can't do this training: %v", e.Device, e.err)
	case e.Step == 0:
		return fmt.Sprintf("the device %s failed at the end of epoch %d: %v", e.Device, e.Epoch, e.err)
	}
	return fmt.Sprintf("the device %s failed in epoch %d, step %d: %v", e.Device, e.Epoch, e.Step, e.err)
}

func (e *Broken) Unwrap() error { return e.err }

// openDevice makes the device that passes run on. p3 computes and sends first layers in
// the host's memory, and pipelines the rows of all: their passes run there, too.
func (t *trainer) openDevice() (err error) {
	if t.device, err = t.options.open(); err != nil {
		return err
	}
	t.foreign, _ = t.device.(tensor.Foreign)
	if way := t.recipe.Sharing.Strategy; t.foreign != nil && (way == strategy.P3 || strategy.Piped(way)) {
		t.notes = append(t.notes, fmt.Sprintf("%s is computed on the processor, and not on the device %s", way, t.device.Name()))
		t.device.Close()
		t.options.Device, t.foreign = nil, nil
		t.device = cpu.New(t.options.Threads)
	}
	t.products, _ = t.device.(rounding)
	t.teller, _ = t.device.(tensor.Teller)
	if t.foreign != nil {
		t.device = lender{t.foreign}
	}
	return nil
}

// open makes the device of the options.
func (o *Options) open() (tensor.Device, error) {
	if o.Device == nil {
		return cpu.New(o.Threads), nil
	}
	d, err := o.Device(o.Threads)
	if err != nil {
		return nil, &Broken{Device: "that was asked for", err: err}
	}
	return d, nil
}

// newHand is a device of one thread, whose memory is the host's, for what is done beside
// the passes.
func (t *trainer) newHand() (tensor.Device, error) {
	if t.foreign != nil || t.options.Device == nil {
		return cpu.New(1), nil
	}
	return t.options.Device(1)
}

// A lender says of memory that can't be had of a device that it is the device's. One that
// has failed has none, and how it failed is why.
type lender struct{ tensor.Foreign }

// NewArena is as tensor.Device says.
func (l lender) NewArena(bytes int) (tensor.Arena, error) {
	a, err := l.Foreign.NewArena(bytes)
	if err != nil {
		if failed := l.Err(); failed != nil {
			err = failed
		}
		return nil, &Broken{Device: l.Name(), err: err}
	}
	return a, nil
}

// limited is a device that can say how much of its memory is left.
type limited interface{ Free() (free, total uint64) }

// fault says whether the device has failed, in a step of an epoch or, with 0, after the
// last one. Before it has been asked nothing that was read of the device may be told to
// another node, nor be written down.
func (t *trainer) fault(epoch, step int) error {
	if t.foreign == nil {
		return nil
	}
	if err := t.foreign.Err(); err != nil {
		return &Broken{Device: t.foreign.Name(), Epoch: epoch, Step: step, err: err}
	}
	return nil
}

// faultNow is fault in the step that a learner is to do next.
func (t *learner) faultNow() error {
	step := t.at.Step + 1
	if t.batches != nil && t.at.Step == t.batches.steps {
		step = 0
	}
	return t.fault(t.at.Epoch, step)
}

// question has a device that can tell of a pass at its end, and all at once: its loss and
// whether it is finite are what answered returns, and before that nobody waits.
func (t *trainer) question() {
	if t.teller != nil {
		t.teller.Ask()
	}
}

func (t *trainer) answered(loss float64, finite bool) (float64, bool) {
	if t.teller == nil {
		return loss, finite
	}
	sum, _, sound := t.teller.Told()
	return sum, sound
}

// errFront is why p3 is not computed on a device that auto would choose it for.
var errFront = errors.New("p3 was chosen, which is computed on the processor")

// onDevice is what a run takes of a device's own memory, beside the weights: rows, copies
// of blocks and of sparse features, and what the device holds.
func (n *needs) onDevice() uint64 { return n.pass + n.beside + n.slot + n.ferry }

// onHost is what a run takes of the host's memory, but for inference beyond the least.
func (n *needs) onHost(t *trainer) uint64 {
	if t.foreign != nil {
		return n.others()
	}
	return n.others() + n.pass + n.least
}

// free is what of a device's memory this run has or can still have, but for weights.
func (t *trainer) free(l limited) (free, total uint64) {
	free, total = l.Free()
	free -= free / 16 // what it keeps for itself, and what lies between arenas
	return free + t.taken(), total
}

// taken is what this run has taken of a device's memory for steps and for the graph, and
// would take again if steps became others. Copies of blocks are left out, which are as
// large as they happened to be.
func (t *trainer) taken() uint64 {
	if t.ferry == nil {
		return 0
	}
	bytes := t.ferry.holds.edges.Graph
	if t.work != nil {
		bytes += uint64(t.work.Bytes())
	}
	if t.ferry.held != nil {
		bytes += uint64(t.ferry.held.Bytes())
	}
	for _, s := range t.batches.slots {
		if s.landing != nil && s.landing.rows != nil {
			bytes += uint64(s.landing.rows.Bytes())
		}
	}
	return bytes
}

// room bounds what inference takes by what the device has left.
func (n *needs) room(t *trainer) {
	if l, ok := t.foreign.(limited); ok {
		free, _ := t.free(l)
		n.inference = free - min(free, n.onDevice())
	}
}

// affordDevice says what is short of the device's memory.
func (t *trainer) affordDevice(n *needs) error {
	l, ok := t.foreign.(limited)
	if !ok {
		return nil
	}
	free, total := t.free(l)
	if needs := n.onDevice() + n.least; needs > free {
		return &Broken{Device: t.foreign.Name(), err: fmt.Errorf("it needs %s of the device's memory, which has %s free of %s: take a smaller --batch, --fanout or --hidden", gib(needs), gib(free), gib(total))}
	}
	return nil
}
