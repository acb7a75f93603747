package slot

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Open opens a device with so many threads; where open is nil, so many of this machine's
// cores.
func Open(open func(threads int) (tensor.Device, error), threads int) (tensor.Device, error) {
	if open == nil {
		return cpu.New(threads), nil
	}
	d, err := open(threads)
	if err != nil {
		return nil, &Broken{Device: "that was asked for", Err: err}
	}
	return d, nil
}

// Lend returns a device that marks an error of its memory as the device's. If the device
// has failed, the error says how.
func Lend(d tensor.Foreign) tensor.Device { return lender{d} }

type lender struct{ tensor.Foreign }

// NewArena implements tensor.Device.
func (l lender) NewArena(bytes int) (tensor.Arena, error) {
	a, err := l.Foreign.NewArena(bytes)
	if err != nil {
		if failed := l.Err(); failed != nil {
			err = failed
		}
		return nil, &Broken{Device: l.Name(), Err: err}
	}
	return a, nil
}

// Broken is the error of a run whose device failed. What it made since is invalid, and
// the previous checkpoint is kept: the CPU can go on from that.
type Broken struct {
	Device      string
	Epoch, Step int // from 1; 0: before the first epoch, or between two steps
	Err         error
}

func (e *Broken) Error() string {
	switch {
	case e.Epoch == 0:
		return fmt.Sprintf("the device %s can't do this training: %v", e.Device, e.Err)
	case e.Step == 0:
		return fmt.Sprintf("the device %s failed at the end of epoch %d: %v", e.Device, e.Epoch, e.Err)
	}
	return fmt.Sprintf("the device %s failed in epoch %d, step %d: %v", e.Device, e.Epoch, e.Step, e.Err)
}

func (e *Broken) Unwrap() error { return e.Err }

// There returns the device memory that a run has taken for steps and the graph, and would take
// again for other steps. Copies of blocks, whose size varies, are left out. f may be nil.
func (b *Batches) There(f *Uploader, work tensor.Arena) uint64 {
	if f == nil {
		return 0
	}
	bytes := f.Holds.Edges.Graph
	if work != nil {
		bytes += uint64(work.Bytes())
	}
	if f.Held != nil {
		bytes += uint64(f.Held.Bytes())
	}
	for _, s := range b.Slots {
		if s.Staged != nil && s.Staged.Rows != nil {
			bytes += uint64(s.Staged.Rows.Bytes())
		}
	}
	return bytes
}
