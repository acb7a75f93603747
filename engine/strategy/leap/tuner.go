package leap

import (
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/deal"
)

// A tuner chooses the number of slots of a step by the times of epochs, the median of
// three with each number: one slow epoch decides nothing. It takes one less as long as
// that was faster than all before. When it is not, it takes one more again and stops. The
// first epoch does not count: warming up makes it slow, and the first cut look good.
type tuner struct {
	deal.Tuning
	given bool // by the user: there is nothing to tune
}

func newTuner(nodes int, members uint64) tuner {
	return tuner{Tuning: deal.Tuning{Nodes: nodes, Members: members, Slots: nodes}}
}

// fix sets the slots of a job for good. Where nodes have left there are no more slots
// than nodes: the job goes on.
func (t *tuner) fix(slots int) {
	t.Slots, t.Frozen, t.given = min(slots, t.Nodes), true, true
}

// note implements deal.Dealer's Note.
func (t *tuner) note(seconds float64) {
	t.Epochs++
	if t.Frozen || t.Epochs == 1 {
		return
	}
	if !(seconds > 0 && seconds <= math.MaxFloat64) {
		seconds = math.MaxFloat64 // it is no time
	}
	for i := range t.Seen {
		if t.Seen[i] == 0 {
			t.Seen[i] = seconds
			return
		}
	}
	three := [3]float64{t.Seen[0], t.Seen[1], seconds}
	slices.Sort(three[:])
	took := three[1]
	t.Seen = [2]float64{}
	if took == math.MaxFloat64 || t.Best > 0 && took >= t.Best {
		t.Slots, t.Frozen = min(t.Slots+1, t.Nodes), true
		return
	}
	t.Best = took
	if t.Slots--; t.Slots == 0 {
		t.Slots, t.Frozen = 1, true
	}
}

// restore implements deal.Dealer's Restore. Results from other nodes, even if they
// were as many, are not used.
func (t *tuner) restore(found deal.Tuning) {
	if !t.given && found.Nodes == t.Nodes && found.Members == t.Members && found.Slots >= 1 && found.Slots <= t.Nodes {
		t.Tuning = found
	}
}
