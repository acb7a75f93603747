package pipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
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
	if err != nil {
		return 0, err
	}
	defer w.Close()
	w.trialStep = uint32(firstTrialStep + r.done*trialSteps)
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
		took, err := w.slowest(ctx, epoch-1, time.Since(begin).Seconds())
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
	return seconds, w.withdraw(ctx)
}

// slowest returns the longest of all nodes' times.
func (w *wire) slowest(ctx context.Context, epoch int, mine float64) (most float64, err error) {
	tag := w.stamp(epoch)
	tag.Step++
	messages, err := w.task.Exchange.Gather(ctx, tag, binary.LittleEndian.AppendUint64(nil, math.Float64bits(mine)), nil)
	if err != nil {
		return 0, fmt.Errorf("compare the times of a trial: %w", err)
	}
	for node, m := range messages {
		if len(m) != 8 {
			return 0, fmt.Errorf("node %s sent the time of a trial in %d bytes instead of 8: run the same version of hopmesh on all nodes of the job", w.task.Work.Nodes[node], len(m))
		}
		seconds := math.Float64frombits(binary.LittleEndian.Uint64(m))
		if !(seconds >= 0) || seconds > math.MaxUint32 {
			return 0, fmt.Errorf("node %s reports %g s for an epoch of a trial", w.task.Work.Nodes[node], seconds)
		}
		most = max(most, seconds)
	}
	return most, nil
}

// stamp returns the tag of what belongs to an epoch, from 0, or to an epoch of a trial.
func (w *wire) stamp(epoch int) exchange.Tag {
	if w.trialStep > 0 {
		return exchange.Tag{Step: w.trialStep + 2*uint32(epoch)}
	}
	return exchange.Tag{Epoch: uint32(epoch + 1)}
}

// offer lets other nodes take parts. A trial withdraws its offers when it ends.
func (w *wire) offer(t exchange.Tag, parts ...[]byte) {
	if w.trialStep > 0 {
		w.offered = append(w.offered, t)
	}
	w.task.Exchange.Offer(t, parts...)
}

// withdraw ends the offers of a trial, all of which have been taken, so that nothing
// keeps their memory.
func (w *wire) withdraw(ctx context.Context) error {
	for _, t := range w.offered {
		if err := w.task.Exchange.Withdraw(ctx, t); err != nil {
			return fmt.Errorf("end a trial: %w", err)
		}
	}
	return nil
}
