package leap

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A tuner chooses the number of slots of a step by the times of epochs. It takes one
// less after each epoch that was faster than all before. After the first that was not,
// it takes one more again and stops. The first epoch does not count: warming up makes
// it slow, and the first cut look good.
type tuner struct {
	deal.Tuning
	given bool // by the user: there is nothing to tune
}

func newTuner(l *peer.Layout) tuner {
	return tuner{Tuning: deal.Tuning{Nodes: l.Nodes, Members: l.Members, Slots: l.Nodes}}
}

// fix sets the slots of a job for good. Where nodes have left there are no more slots
// than nodes: the job goes on.
func (t *tuner) fix(slots int) {
	t.Slots, t.Frozen, t.given = min(slots, t.Nodes), true, true
}

// note implements deal.Dealer's Note.
func (t *tuner) note(seconds float64) {
	t.Epochs++
	switch {
	case t.Frozen || t.Epochs == 1:
	case seconds > 0 && seconds <= math.MaxFloat64 && (t.Best == 0 || seconds < t.Best):
		t.Best = seconds
		if t.Slots--; t.Slots == 0 {
			t.Slots, t.Frozen = 1, true
		}
	default:
		t.Slots, t.Frozen = min(t.Slots+1, t.Nodes), true
	}
}

// restore implements deal.Dealer's Restore. Results from other nodes, even if they
// were as many, are not used.
func (t *tuner) restore(found deal.Tuning) {
	if !t.given && found.Nodes == t.Nodes && found.Members == t.Members && found.Slots >= 1 && found.Slots <= t.Nodes {
		t.Tuning = found
	}
}
