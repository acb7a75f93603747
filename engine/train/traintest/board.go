package traintest

import (
	"bytes"
	"context"
	"slices"
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
func (b *Board) At(epoch int, rate float64) (schedule.Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at(epoch, rate)
}

// at finds the last entry that has begun or, if that one has another rate, the next that fits, as
// the plan does. The mutex is locked.
func (b *Board) at(epoch int, rate float64) (schedule.Entry, bool) {
	for i, e := range b.Entries {
		if e.Rate == rate && (i+1 == len(b.Entries) || b.Entries[i+1].From > epoch) {
			return e, true
		}
	}
	return schedule.Entry{}, false
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
		// As in the plan, an entry replaces all that begin later, and is not added if the one before
		// says the same.
		b.Entries = slices.DeleteFunc(slices.Clone(b.Entries), func(o schedule.Entry) bool { return o.From >= e.From })
		n := len(b.Entries)
		if n == 0 || b.Entries[n-1].Strategy != e.Strategy || !bytes.Equal(b.Entries[n-1].Part, e.Part) || b.Entries[n-1].Rate != e.Rate {
			b.Entries = append(b.Entries, e)
		}
		if b.changed != nil {
			close(b.changed)
			b.changed = nil
		}
	}()
}

// Known implements schedule.Plan.
func (b *Board) Known(ctx context.Context, epoch int, rate float64) (schedule.Entry, error) {
	return b.await(ctx, func() (schedule.Entry, bool) { return b.at(epoch, rate) })
}

// Await implements schedule.Plan.
func (b *Board) Await(ctx context.Context, from int) (schedule.Entry, error) {
	return b.await(ctx, func() (schedule.Entry, bool) {
		for _, e := range b.Entries {
			if e.From == from {
				return e, true
			}
		}
		return schedule.Entry{}, false
	})
}

// await waits until there is what find finds, with the mutex locked.
func (b *Board) await(ctx context.Context, find func() (schedule.Entry, bool)) (schedule.Entry, error) {
	for {
		b.mu.Lock()
		e, found := find()
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		if found {
			return e, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return schedule.Entry{}, context.Cause(ctx)
		}
	}
}
