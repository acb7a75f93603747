package auto

import (
	"fmt"
	"math"
	"slices"

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

// A watch decides when strategies are tried, by the times of epochs and the rows that come in them.
type watch struct {
	seconds []float64 // of the latest epochs with the strategy in use
	epochs  int       // with it
	usual   float64   // seconds of an epoch when it was new; 0: not known yet
	rest    int       // epochs without another trial
	// came is which share of other nodes' rows came in the last trial or, before there is one, in the
	// run's first whole epoch. Other rows were kept from before. Where the share is much less later,
	// what was tried says little.
	came float64
	// untried: the first trial is still to come, or the last showed nothing. There is one once half as
	// many rows come as in the first epoch, or after recent epochs.
	untried bool
}

// tried begins anew after a trial, in an epoch with such rows.
func (w *watch) tried(r epoch.Rows) {
	*w = watch{rest: min(mostRest, max(recent, 2*w.rest)), came: came(r)}
}

// renew begins anew with another strategy.
func (w *watch) renew() { w.seconds, w.epochs, w.usual = w.seconds[:0], 0, 0 }

// least returns how many seconds the fastest of the latest epochs took, or 0 before the first has ended.
func (w *watch) least() float64 {
	if len(w.seconds) == 0 {
		return 0
	}
	return slices.Min(w.seconds)
}

// came returns the share of other nodes' rows that came from them.
func came(r epoch.Rows) float64 {
	if r.Remote == 0 {
		return 0
	}
	return float64(r.Remote) / float64(r.Remote+r.Kept)
}

// note records a whole epoch and reports whether it is time for a trial: the first one, once rows have
// come or after recent epochs; or another, since epochs have changed.
func (w *watch) note(seconds float64, r epoch.Rows) bool {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return false
	}
	if w.epochs++; len(w.seconds) == recent {
		w.seconds = w.seconds[:copy(w.seconds, w.seconds[1:])]
	}
	w.seconds = append(w.seconds, seconds)
	if w.untried {
		if w.came == 0 {
			w.came = came(r)
		}
		return w.epochs >= recent || came(r) <= w.came/2
	}
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

// because says why there is a trial, after an epoch with such rows.
func (w *watch) because(r epoch.Rows) string {
	now := came(r)
	switch {
	case w.untried && now <= w.came/2 && w.came > 0:
		return "now that rows of other nodes have come"
	case w.untried:
		return "since no trial has ended yet"
	case now < w.came/2:
		return fmt.Sprintf("again, since %.0f %% of the rows of other nodes come to those that need them, and %.0f %% did", 100*now, 100*w.came)
	}
	return fmt.Sprintf("again, since epochs take %s and took %s", duration(median(w.seconds)), duration(w.usual))
}
