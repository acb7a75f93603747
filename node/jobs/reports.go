package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// commitEvery is how often epochs are told at most: a change of the plan takes a
// disk's time on most nodes, and some epochs are over in a millisecond.
const commitEvery = 250 * time.Millisecond

// reports are epochs on their way to the plan. It is told of an epoch when that is known
// of all models that train.
type reports struct {
	wake chan struct{} // buffered: there is more, or no more will come

	mu      sync.Mutex
	last    int // the newest epoch that is whole
	waiting []plan.Epoch
	closed  bool
	part    []plan.Epoch // the one after it, of some models in their order
	models  int          // that train at first
}

func newReports(j plan.Job) *reports {
	return &reports{wake: make(chan struct{}, 1), last: j.Last(), models: j.Models()}
}

// add takes an epoch of a model, unless it came before: after a restart some come again.
// It never waits.
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

// begun hears that an epoch is under way: the one before it is whole, though models have
// stopped that trained once.
func (r *reports) begun(epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.part) > 0 && epoch > r.part[0].Epoch {
		r.whole()
	}
}

// whole says that no other model trains in the epoch at hand.
func (r *reports) whole() {
	if len(r.part) == 0 {
		return
	}
	r.last = r.part[0].Epoch
	r.waiting = append(r.waiting, r.part...)
	r.part = nil
	nudge(r.wake)
}

// close says that no more will come. The last epoch is whole if the run is done; else it
// may be cut off, and comes again when the job goes on.
func (r *reports) close(done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done {
		r.whole()
	}
	r.closed = true
	nudge(r.wake)
}

// next is what the plan is to be told now: whole epochs.
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

// send tells the leader of all epochs until there are no more, or ctx ends, which is
// no error. The plan's refusal is one.
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
			cfg.Log.Debug("tell of epochs", "job", j.ID, "err", err)
			wait = lookEvery
		}
		if r.finished() && err == nil {
			continue // nobody is held up any more
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

// pause waits, though not once no more epochs will come.
func (r *reports) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			nudge(r.wake) // what came meanwhile
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

// recordOf is what the plan is told of an epoch.
func recordOf(e train.Epoch, generation uint64, metric string) plan.Epoch {
	p := plan.Epoch{
		Epoch: e.Epoch, Model: e.Model, Loss: number(e.Loss), Seconds: seconds(e.Seconds), Generation: generation, Weights: e.Hash,
		Phases: plan.Phases{
			Sample: seconds(e.Phases.Sample), Gather: seconds(e.Phases.Gather), Compute: seconds(e.Phases.Compute),
			Reduce: seconds(e.Phases.Reduce), Wait: seconds(e.Phases.Wait),
		},
		Rows: plan.Rows{Local: e.Rows - min(e.Remote, e.Rows), Remote: e.Remote},
		Requests: plan.Requests{
			Feature: e.Sent.Requests[strategy.Feature], Topology: e.Sent.Requests[strategy.Topology],
			Activation: e.Sent.Requests[strategy.Activation], Gradient: e.Sent.Requests[strategy.Gradient],
		},
		Bytes: bytesOfKinds(e.Sent), Strategy: e.Strategy, Slots: e.Slots, Behind: e.Behind, Super: e.Super, Seen: e.Seen,
	}
	p.Why = reason(e.Why)
	if f := e.Predicted; f != nil {
		p.Predicted = &plan.Prediction{Stages: f.Stages, Ways: f.Ways, Seconds: seconds(f.Seconds), History: seconds(f.History)}
	}
	if v := e.Eval; v != nil {
		p.Eval = &plan.Eval{
			Seconds: seconds(v.Seconds), Train: accuracy(v.Train), Val: accuracy(v.Val), Test: accuracy(v.Test),
			Score: number(score(v.Val, metric)), Loss: number(v.Val.Loss), Bytes: bytesOfKinds(v.Sent),
		}
	}
	return p
}

// reason makes a text fit for an epoch, of which there are many.
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

func bytesOfKinds(c strategy.Counts) plan.Bytes {
	b := c.Bytes
	return plan.Bytes{
		Feature: b[strategy.Feature], Topology: b[strategy.Topology], Model: b[strategy.Model], Gradient: b[strategy.Gradient],
		Activation: b[strategy.Activation], Shard: b[strategy.Shard], Control: b[strategy.Control],
	}
}

// accuracy is nil of no vertices.
func accuracy(s train.Scores) *float64 {
	if s.Count == 0 {
		return nil
	}
	return new(number(s.Accuracy))
}

// score is what the best epoch has most of.
func score(s train.Scores, metric string) float64 {
	switch metric {
	case train.MacroF1:
		return s.MacroF1
	case train.ROCAUC:
		return s.AUC
	}
	return s.Accuracy
}

// seconds are told to the microsecond, which keeps the plan small.
func seconds(s float64) float64 { return math.Round(number(s)*1e6) / 1e6 }

// number is 0 for what is no number, such as the accuracy on no vertices.
func number(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
