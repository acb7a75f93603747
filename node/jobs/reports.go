package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
)

// commitEvery is the minimum time between reports of epochs. A change of the plan costs a
// disk write on most nodes, and some epochs take only a millisecond.
const commitEvery = 250 * time.Millisecond

// reports holds epochs on their way to the plan. An epoch is reported when it is complete
// for all models that train.
type reports struct {
	wake chan struct{} // buffered: there are more epochs, or no more will come

	mu      sync.Mutex
	last    int // the newest complete epoch
	waiting []plan.Epoch
	closed  bool
	part    []plan.Epoch // the next epoch, of some models in their order
	models  int          // that train at the start
}

func newReports(j plan.Job) *reports {
	return &reports{wake: make(chan struct{}, 1), last: j.Last(), models: j.Models()}
}

// add takes a model's epoch, unless it was added before: some come again after a restart.
// It never blocks.
func (r *reports) add(e plan.Epoch) {
	r.begun(e.Epoch)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Epoch <= r.last || len(r.part) > 0 && e.Epoch < r.part[0].Epoch {
		return
	}
	at, in := slices.BinarySearchFunc(r.part, e.Model, func(o plan.Epoch, model int) int { return cmp.Compare(o.Model, model) })
	if in {
		return
	}
	if r.part = slices.Insert(r.part, at, e); len(r.part) == r.models {
		r.whole()
	}
}

// begun records that an epoch has started. The epoch before it is then complete, even if
// some models have stopped training.
func (r *reports) begun(epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.part) > 0 && epoch > r.part[0].Epoch {
		r.whole()
	}
}

// whole marks the current epoch as complete: no other model trains in it.
func (r *reports) whole() {
	if len(r.part) == 0 {
		return
	}
	r.last = r.part[0].Epoch
	r.waiting = append(r.waiting, r.part...)
	r.part = nil
	nudge(r.wake)
}

// close ends the reports. The last epoch is complete if the run is done. Otherwise it may
// be cut off, and comes again when the job goes on.
func (r *reports) close(done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done {
		r.whole()
	}
	r.closed = true
	nudge(r.wake)
}

// next returns the complete epochs that are to be reported now.
func (r *reports) next() (batch []plan.Epoch, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), plan.MaxCommit)
	for n < len(r.waiting) && r.waiting[n].Epoch == r.waiting[n-1].Epoch {
		n--
	}
	return r.waiting[:n], r.closed
}

func (r *reports) sent(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[n:]
}

// send reports all epochs to the leader until there are no more or ctx ends, neither of
// which is an error. It returns an error if the plan refuses an epoch.
func (r *reports) send(ctx context.Context, cfg Config, j plan.Job) error {
	for ctx.Err() == nil {
		batch, closed := r.next()
		if len(batch) == 0 {
			if closed {
				return nil
			}
			select {
			case <-r.wake:
			case <-ctx.Done():
			}
			continue
		}
		wait := commitEvery
		err := cfg.Leader.Commit(ctx, plan.CommitEpochs{ID: j.ID, Node: cfg.Self, Generation: j.Generation, Epochs: batch})
		switch {
		case err == nil:
			r.sent(len(batch))
		case errors.Is(err, ErrRefused):
			return err
		default:
			cfg.Log.Debug("report epochs", "job", j.ID, "err", err)
			wait = lookEvery
		}
		if r.finished() && err == nil {
			continue // nobody has to wait any more
		}
		r.pause(ctx, wait)
	}
	return nil
}

func (r *reports) finished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// pause waits for d, or until no more epochs will come.
func (r *reports) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			nudge(r.wake) // epochs that came meanwhile
			return
		case <-r.wake:
			if d == commitEvery && r.finished() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// recorded returns an epoch as the plan takes it.
func recorded(e epoch.Record, generation uint64) plan.Epoch {
	e = e.Rounded()
	e.Generation, e.Why = generation, reason(e.Why)
	return e
}

// reason shortens a text to fit into an epoch, of which the plan keeps many.
func reason(why string) string {
	text := sentence(errors.New(why))
	for {
		written, err := json.Marshal(text)
		if err == nil && len(written) <= plan.MaxWhy {
			return text
		}
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
}
