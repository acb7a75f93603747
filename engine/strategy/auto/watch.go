package auto

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

const (
	// recent is how many epochs are looked at together: one slow epoch shows nothing.
	recent = 3
	// changed is how much longer or shorter than usual epochs must take to be looked at again.
	changed = 1.25
	// mostRest bounds the epochs from one trial to the next.
	mostRest = 1 << 12
)

// A watch decides by the times of epochs when strategies are tried again.
type watch struct {
	seconds []float64 // of the latest epochs with the strategy in use
	epochs  int       // with it
	usual   float64   // seconds of an epoch when it was new; 0: not known yet
	rest    int       // epochs without another trial
	// came is which share of other nodes' rows came in the last trial, and was not kept from before.
	// Where that is much less later, what was tried says little.
	came float64
}

// tried begins anew after a trial, in an epoch with such rows.
func (w *watch) tried(r epoch.Rows) {
	*w = watch{rest: min(mostRest, max(recent, 2*w.rest)), came: came(r)}
}

// renew begins anew with another strategy.
func (w *watch) renew() { w.seconds, w.epochs, w.usual = w.seconds[:0], 0, 0 }

// came returns the share of other nodes' rows that came from them.
func came(r epoch.Rows) float64 {
	if r.Remote == 0 {
		return 0
	}
	return float64(r.Remote) / float64(r.Remote+r.Kept)
}

// note records a whole epoch and reports whether the times have changed since the last trial.
func (w *watch) note(seconds float64, r epoch.Rows) bool {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return false
	}
	if w.epochs++; len(w.seconds) == recent {
		w.seconds = w.seconds[:copy(w.seconds, w.seconds[1:])]
	}
	w.seconds = append(w.seconds, seconds)
	if len(w.seconds) < recent {
		return false
	}
	now := median(w.seconds)
	if w.usual == 0 {
		w.usual = now
	}
	if w.epochs < w.rest {
		return false
	}
	return came(r) < w.came/2 || now > changed*w.usual || now < w.usual/changed
}
