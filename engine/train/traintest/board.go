package traintest

import (
	"bytes"
	"context"
	"sync"

	"github.com/hopmesh/hopmesh/engine/schedule"
)

// A Board is a schedule in memory, for the nodes of a mesh: all see what the first one proposes.
type Board struct {
	// Entries are in ascending order of their epochs, those from before the run first.
	Entries []schedule.Entry
	// Hold, if not nil, is called before an entry can be seen.
	Hold func(schedule.Entry)

	mu       sync.Mutex
	proposed []int // the first epochs of entries that were proposed
	changed  chan struct{}
}

var _ schedule.Plan = (*Board)(nil)

// At implements schedule.Plan.
func (b *Board) At(epoch int, rate float64) (found schedule.Entry, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.Entries {
		if e.From <= epoch && e.Rate == rate {
			found, known = e, true
		}
	}
	return found, known
}

// Last implements schedule.Plan.
func (b *Board) Last() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.Entries) == 0 {
		return 0
	}
	return b.Entries[len(b.Entries)-1].From
}

// Proposed returns the first epochs of the entries that were proposed, in their order.
func (b *Board) Proposed() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.proposed...)
}

// Propose implements schedule.Plan.
func (b *Board) Propose(e schedule.Entry) {
	go func() {
		if b.Hold != nil {
			b.Hold(e)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.proposed = append(b.proposed, e.From)
		if n := len(b.Entries); n > 0 {
			if last := &b.Entries[n-1]; last.Strategy == e.Strategy && bytes.Equal(last.Part, e.Part) && last.Rate == e.Rate {
				return // as in the plan, which adds nothing that changes nothing
			}
		}
		b.Entries = append(b.Entries, e)
		if b.changed != nil {
			close(b.changed)
			b.changed = nil
		}
	}()
}

// Known implements schedule.Plan: here an entry is always added.
func (b *Board) Known(ctx context.Context, epoch int, _ float64) (schedule.Entry, error) {
	return b.Await(ctx, epoch)
}

// Await implements schedule.Plan.
func (b *Board) Await(ctx context.Context, from int) (schedule.Entry, error) {
	for {
		b.mu.Lock()
		for _, e := range b.Entries {
			if e.From == from {
				b.mu.Unlock()
				return e, nil
			}
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return schedule.Entry{}, context.Cause(ctx)
		}
	}
}
