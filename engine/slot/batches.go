package slot

import (
	"context"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Batches prepares the steps of an epoch. The run's goroutine calls its methods; workers
// fill slots in goroutines of their own.
type Batches struct {
	by    func() Preparer
	size  int // roots of a batch; the last may have fewer
	Steps int
	// Same means that each epoch has the same single batch, which Fill has filled.
	Same bool
	Extent
	open func() (*Worker, error)

	Taken
	idle   chan *Worker
	loader *sample.Loader[Slot]

	queue []*Slot  // the steps under way after the current one
	order []uint32 // of the current epoch
	seed  uint64
	epoch int
	first int // the step that the loader calls 0
}

// Taken is what batches hold once they are opened.
type Taken struct {
	Slots   []*Slot
	Workers []*Worker
	// Rows is memory of the dense input of the step that is computed, where slots have
	// none of their own.
	Rows tensor.Arena
}

// Extent is how many slots there are, or will be once they are opened, and how many
// workers.
type Extent struct{ Depth, Hands int }

// A Preparer fills slots.
type Preparer interface {
	// Prepare fills a slot for its step of an epoch. Look only finds how large it gets.
	Prepare(ctx context.Context, w *Worker, s *Slot, epoch int) error
	Look(ctx context.Context, w *Looker, o *Outline, epoch int) error
	// Inflight is how many steps are under way at once.
	Inflight() int
}

// NewBatches makes batches of so many of the seed vertices, 0: all, which it puts in an
// order by the seed, with the given number of slots, all but one of which are prefetched,
// and the workers that fill them by what by returns. full means that all neighbours are
// sampled.
// Slots and workers take memory once they are opened.
func NewBatches(seeds []uint32, size int, seed uint64, full bool, slots, workers int, open func() (*Worker, error), by func() Preparer) *Batches {
	n := len(seeds)
	b := &Batches{by: by, size: size, seed: seed, order: seeds, open: open}
	if b.size == 0 || b.size > n {
		b.size = n
	}
	b.Steps = (n + b.size - 1) / b.size
	b.Same = b.Steps == 1 && full
	if b.Steps == 1 {
		slots, workers = 1, 1
	}
	b.Depth, b.Hands = slots, workers
	return b
}

// Open makes the slots and the workers.
func (b *Batches) Open() error {
	b.idle = make(chan *Worker, b.Hands)
	for range b.Hands {
		h, err := b.open()
		if err != nil {
			return err
		}
		b.Workers = append(b.Workers, h)
		b.idle <- h
	}
	for range b.Depth {
		rows, err := b.Workers[0].Device.NewArena(0)
		if err != nil {
			return err
		}
		b.Slots = append(b.Slots, &Slot{Rows: rows})
	}
	b.loader = sample.NewLoader(b.Slots, b.Hands, b.fill)
	return nil
}

// Close ends the workers and releases their memory and that of the slots.
func (b *Batches) Close() {
	if b == nil {
		return
	}
	if b.loader != nil {
		b.loader.End()
	}
	for _, s := range b.Slots {
		s.Staged.Close(s)
		s.Rows.Close()
		s.forgetFar()
	}
	b.unshare()
	for _, h := range b.Workers {
		h.Close()
	}
}

// Shuffle sets the order of an epoch. An epoch of one step keeps the order of the
// vertices.
func (b *Batches) Shuffle(epoch int) {
	b.epoch = epoch
	if b.Steps > 1 {
		sample.Order(b.seed, uint64(epoch), b.order)
	}
}

// Set assigns a slot to a step.
func (b *Batches) Set(s *Slot, step int) {
	s.Step = step
	s.Roots = b.Roots(step)
}

// Roots returns the seed vertices of a step of the epoch.
func (b *Batches) Roots(step int) []uint32 {
	return b.order[step*b.size : min((step+1)*b.size, len(b.order))]
}

// fill is called by the loader.
func (b *Batches) fill(ctx context.Context, s *Slot, step int) error {
	return b.With(ctx, func(h *Worker) error {
		b.Set(s, b.first+step)
		return b.by().Prepare(ctx, h, s, b.epoch)
	})
}

// With calls a function with a worker that is idle, once there is one.
func (b *Batches) With(ctx context.Context, do func(h *Worker) error) (err error) {
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err)
	defer mapped.CaughtAny(&err)
	select {
	case h := <-b.idle:
		defer func() { b.idle <- h }()
		return do(h)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Begin starts to prepare the steps of an epoch from this one on.
func (b *Batches) Begin(ctx context.Context, epoch, step int) {
	b.Shuffle(epoch)
	b.first = step
	if !b.Same {
		b.loader.Begin(ctx, b.Steps-step)
	}
}

// Next returns the slot of a step, the slots of the later steps that are under way
// meanwhile, and how long it waited for them.
func (b *Batches) Next(ctx context.Context, step int) (s *Slot, later []*Slot, waited time.Duration, err error) {
	if b.Same {
		return b.Slots[0], nil, 0, nil
	}
	for n := len(b.queue); n < b.by().Inflight() && step+n < b.Steps; n++ {
		start := time.Now()
		s, err := b.loader.Next(ctx)
		waited += time.Since(start)
		if err != nil {
			return nil, nil, waited, err
		}
		b.queue = append(b.queue, s)
	}
	s = b.queue[0]
	b.queue = b.queue[:copy(b.queue, b.queue[1:])]
	return s, b.queue, waited, nil
}

// Following returns the slot of the step after that which Next has returned last, if it is
// prepared already; else nil. It must only be read.
func (b *Batches) Following() *Slot {
	switch {
	case b.Same:
		return nil
	case len(b.queue) > 0:
		return b.queue[0]
	}
	return b.loader.Following()
}

// Release returns a slot to the loader, once its effort has been counted.
func (b *Batches) Release(s *Slot) {
	s.Forget()
	if !b.Same {
		b.loader.Release(s)
	}
}

// End stops what Begin started.
func (b *Batches) End() {
	b.queue = b.queue[:0]
	if !b.Same {
		b.loader.End()
	}
}

// Outline finds how large some steps of an epoch get, one after the other. It prepares
// none of them. What see gets is valid until it returns.
func (b *Batches) Outline(ctx context.Context, w *Looker, epoch, steps int, see func(*Outline)) error {
	b.Shuffle(epoch)
	var o Outline
	for step := range min(steps, b.Steps) {
		o.Step, o.Roots = step, b.Roots(step)
		if err := b.by().Look(ctx, w, &o, epoch); err != nil {
			return err
		}
		see(&o)
	}
	return nil
}

// Fill fills the slot of the batch that serves all steps.
func (b *Batches) Fill(ctx context.Context, epoch int) error {
	b.Shuffle(epoch)
	s := b.Slots[0]
	b.Set(s, 0)
	return b.by().Prepare(ctx, b.Workers[0], s, epoch)
}

// Land gives each slot a place on a device with room for so many bytes of rows.
func (b *Batches) Land(f *Uploader, bytes int) error {
	for _, s := range b.Slots {
		if err := f.Land(s, bytes, false); err != nil {
			return err
		}
	}
	return nil
}

// Reserve makes the slots' arenas large enough for so many bytes of rows.
func (b *Batches) Reserve(bytes int) error {
	if b.Same {
		return nil // already filled
	}
	b.unshare() // of a method that gathered late
	for _, s := range b.Slots {
		if s.Staged != nil {
			if err := s.Staged.Uploader.Land(s, bytes, false); err != nil {
				return err
			}
			continue
		}
		rows, err := b.Workers[0].Device.NewArena(bytes)
		if err != nil {
			return err
		}
		s.Rows.Close()
		s.Rows = rows
	}
	return nil
}
