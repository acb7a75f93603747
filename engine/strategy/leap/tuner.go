package leap

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A tuner finds out how many slots a step has, by the times of epochs: one less after
// each epoch that was faster than all before; after the first that was not, one more
// again, and that is it. The first epoch does not count: warming up makes it slow, and
// the first cut look good.
type tuner struct {
	strategy.Tuning
	given bool // by the user: there is nothing to find out
}

func newTuner(l *strategy.Layout) tuner {
	return tuner{Tuning: strategy.Tuning{Nodes: l.Nodes, Members: l.Members, Slots: l.Nodes}}
}

// fix sets the slots of a job for good. Where nodes have left there are no more slots
// than nodes: the job goes on.
func (t *tuner) fix(slots int) {
	t.Slots, t.Frozen, t.given = min(slots, t.Nodes), true, true
}

// note implements strategy.Dealer's Note.
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

// restore implements strategy.Dealer's Restore: what was found with other nodes, even
// if they were as many, says nothing of these.
func (t *tuner) restore(found strategy.Tuning) {
	if !t.given && found.Nodes == t.Nodes && found.Members == t.Members && found.Slots >= 1 && found.Slots <= t.Nodes {
		t.Tuning = found
	}
}
