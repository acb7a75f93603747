package pipe

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

const (
	// A trial trains so many epochs at most, and no further one once those that count have
	// taken longTrial. The first one does not count, since it takes memory and reads
	// features.
	trialEpochs = 10
	longTrial   = 250 * time.Millisecond
	// longEpoch is an epoch of the first candidate after which there is one epoch for each
	// candidate, which counts.
	longEpoch = 2 * time.Second
	// The steps of trials, two an epoch, come after all messages of meeting nodes and
	// before the first epoch.
	firstTrialStep = 32
	trialSteps     = 2 * (trialEpochs + 1)
)

// Trials measure candidates, one after the other. All nodes try the same ones at the same
// place of their run.
type Trials struct {
	done  int
	short bool // epochs are long, so each candidate is tried for one
}

// Try trains some epochs by the arrangement of a task and discards what they make: weights
// stay as they are. It returns the time of the fastest epoch on the slowest node, which is
// the same on all nodes. ready is called when the worker knows what it reads, before it
// takes memory.
func (r *Trials) Try(ctx context.Context, t Task, ready func(*Worker) error) (seconds float64, err error) {
	t.Period = math.MaxInt32 // so that no epoch makes a history: Choose adds its share
	w, err := New(ctx, t)
	if w != nil {
		defer w.Close()
	}
	if err != nil {
		return 0, err
	}
	w.net.Trial = uint32(firstTrialStep + r.done*trialSteps)
	if err := w.Meet(ctx, nil); err != nil {
		return 0, err
	}
	if err := ready(w); err != nil {
		return 0, err
	}
	if err := w.Open(); err != nil {
		return 0, err
	}
	w.history = true // of zeros
	seconds, sum := math.Inf(1), 0.0
	for number := range trialEpochs {
		begin, epoch := time.Now(), number+2 // the first epoch of a job begins a period
		if _, _, err := w.Epoch(ctx, epoch, keyed.New(t.Seed, keyed.Dropout), 0, nil); err != nil {
			return 0, fmt.Errorf("epoch %d: %w", epoch, err)
		}
		took, err := w.net.Slowest(ctx, epoch-1, time.Since(begin).Seconds())
		if err != nil {
			return 0, err
		}
		if r.done == 0 && number == 0 {
			r.short = took > longEpoch.Seconds()
		}
		if number > 0 || r.short {
			seconds, sum = min(seconds, took), sum+took
		}
		if r.short || sum >= longTrial.Seconds() {
			break
		}
	}
	r.done++
	return seconds, w.net.Withdraw(ctx)
}
