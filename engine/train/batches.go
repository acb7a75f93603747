package train

import (
	"context"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// batches prepares what the steps of an epoch need. The trainer's goroutine calls
// its methods; hands fill slots in goroutines of their own.
type batches struct {
	phases *phases
	size   int // roots of a batch; the last may have fewer
	steps  int
	// same says that each epoch has the same one batch, which ahead has filled.
	same bool

	slots  []*slot
	hands  []*hand
	idle   chan *hand
	loader *sample.Loader[slot]

	order []uint32 // of the epoch in hand
	seed  uint64
	epoch int
	first int // the step that the loader calls 0
}

// newBatches makes batches with so many slots, so that all but one are filled ahead,
// and hands, each with a device.
func newBatches(d *data, deal *dealing, p *phases, r *Recipe, o sample.Options, slots, hands int, device func() (tensor.Device, error)) (*batches, error) {
	n := len(d.training)
	b := &batches{phases: p, size: r.Batch, seed: r.Seed, order: slices.Clone(d.training)}
	if b.size == 0 || b.size > n {
		b.size = n
	}
	b.steps = (n + b.size - 1) / b.size
	full := !slices.ContainsFunc(o.Fanouts, func(k int) bool { return k > 0 })
	b.same = b.steps == 1 && full
	if b.steps == 1 {
		slots, hands = 1, 1
	}
	b.idle = make(chan *hand, hands)
	for range hands {
		own, err := device()
		if err == nil {
			var h *hand
			h, err = newHand(d, deal, o, own)
			b.hands = append(b.hands, h)
		}
		if err != nil {
			b.close()
			return nil, err
		}
		b.idle <- b.hands[len(b.hands)-1]
	}
	for range slots {
		rows, err := b.hands[0].device.NewArena(0)
		if err != nil {
			b.close()
			return nil, err
		}
		b.slots = append(b.slots, &slot{rows: rows})
	}
	b.loader = sample.NewLoader(b.slots, hands, b.fill)
	return b, nil
}

func (b *batches) close() {
	if b == nil {
		return
	}
	if b.loader != nil {
		b.loader.End()
	}
	for _, s := range b.slots {
		s.landing.close(s)
		s.rows.Close()
	}
	for _, h := range b.hands {
		h.close()
	}
}

// shuffle sets the order of an epoch. An epoch of one step needs none: it keeps that
// of the vertices.
func (b *batches) shuffle(epoch int) {
	b.epoch = epoch
	if b.steps > 1 {
		sample.Order(b.seed, uint64(epoch), b.order)
	}
}

// set says which step a slot is for.
func (b *batches) set(s *slot, step int) {
	s.step = step
	s.roots = b.roots(step)
}

// roots are those of a step of the epoch.
func (b *batches) roots(step int) []uint32 {
	return b.order[step*b.size : min((step+1)*b.size, len(b.order))]
}

// fill is what the loader calls.
func (b *batches) fill(ctx context.Context, s *slot, step int) error {
	select {
	case h := <-b.idle:
		defer func() { b.idle <- h }()
		b.set(s, b.first+step)
		return h.fill(ctx, s, b.phases, b.epoch)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin starts to prepare the steps of an epoch from this one on.
func (b *batches) begin(ctx context.Context, epoch, step int) {
	b.shuffle(epoch)
	b.first = step
	if !b.same {
		b.loader.Begin(ctx, b.steps-step)
	}
}

// next returns the slot of the next step, and how long that was waited for.
func (b *batches) next(ctx context.Context) (*slot, time.Duration, error) {
	if !b.same {
		start := time.Now()
		s, err := b.loader.Next(ctx)
		return s, time.Since(start), err
	}
	return b.slots[0], 0, nil
}

// release gives a slot back. What it took has been counted.
func (b *batches) release(s *slot) {
	s.forget()
	if !b.same {
		b.loader.Release(s)
	}
}

// end stops what begin started.
func (b *batches) end() {
	if !b.same {
		b.loader.End()
	}
}

// ahead fills a slot for some steps of an epoch, one after the other, to see how
// large batches get. Rows of other nodes are not asked for, unless the batch is that of
// every step; where groups train in isolation, they are there or have yet to come.
func (b *batches) ahead(ctx context.Context, epoch, steps int, see func(*slot)) error {
	b.shuffle(epoch)
	s := b.slots[0]
	for step := range min(steps, b.steps) {
		b.set(s, step)
		h := b.hands[0]
		var err error
		fills := h.dealing.shared == nil || h.dealing.front != nil || b.same
		if n := h.dealing.isolated; n != nil {
			fills = len(n.now.far) == 0
		}
		if fills {
			err = h.fill(ctx, s, b.phases, epoch)
		} else {
			err = h.look(ctx, s, epoch)
		}
		if err != nil {
			return err
		}
		see(s)
	}
	return nil
}

// land gives all slots a place on a device, for so many bytes of rows each.
func (b *batches) land(f *ferry, bytes int) error {
	for _, s := range b.slots {
		if err := f.land(s, bytes, false); err != nil {
			return err
		}
	}
	return nil
}

// reserve has the slots' arenas hold so many bytes of rows at once.
func (b *batches) reserve(bytes int) error {
	if b.same {
		return nil // it is filled
	}
	for _, s := range b.slots {
		if s.landing != nil {
			if err := s.landing.ferry.land(s, bytes, false); err != nil {
				return err
			}
			continue
		}
		rows, err := b.hands[0].device.NewArena(bytes)
		if err != nil {
			return err
		}
		s.rows.Close()
		s.rows = rows
	}
	return nil
}
