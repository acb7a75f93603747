// Package schedule is what a run sees of the epoch schedule that its nodes have agreed on: how
// epochs are shared, from which on and why. Where they agree is not known here.
package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// An Entry is how the nodes of a run share its epochs, from one on until another entry begins.
type Entry struct {
	From     int
	Strategy string
	Part     []byte // what the strategy has decided beside; only the strategy reads it
	Rate     float64
	Why      string // "": there is nothing to say
}

// Digest returns a number that differs, but for chance, between entries that say different things
// of an epoch. Why they say it does not count.
func (e *Entry) Digest() uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %x %v", e.From, e.Strategy, e.Part, e.Rate))
	return binary.LittleEndian.Uint64(sum[:])
}

// A Plan is where the nodes of a run agree on its schedule. All of them see the same entries from
// before the run, and those that its first node proposes sooner or later. Its methods may be
// called from any goroutine.
type Plan interface {
	// At returns the entry that is in force in an epoch, for these nodes and a learning rate;
	// false: none is.
	At(epoch int, rate float64) (Entry, bool)
	// Last returns the first epoch of the last entry; 0: there are no entries.
	Last() int
	// Propose has an entry agreed on, and does not wait for that. Only the first node of a run
	// proposes, and only one entry for an epoch.
	Propose(Entry)
	// Await returns the entry that was proposed in this run from an epoch on, once it is agreed
	// on. It returns an error if it never will be.
	Await(ctx context.Context, from int) (Entry, error)
	// Known waits until At knows what holds in an epoch. An entry that says what one before it says
	// of the same nodes is not added, so that Await would not see it.
	Known(ctx context.Context, epoch int, rate float64) (Entry, error)
}
