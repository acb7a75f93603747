package train

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// local is what a run has whose models update themselves after each slot, and are
// averaged every few steps and at the end of each epoch: weights, moments, and how many
// updates they are of. There are as many models as nodes that learn. They differ between averages,
// so what a node computes with must have come from the node where the model was before,
// with all that it remembers.
//
// Only after an average do all nodes have the same. That is what a checkpoint holds: a
// run that is interrupted goes back to the last average, and loses the steps since then,
// which are fewer than leap.sync_every.
//
// Nodes tell each other the loss of each step when they are done with it, as they do
// where gradients are added up. So none is a step ahead of one that has yet to take a
// model over from it, and two sets of buffers for models are enough.
type local struct {
	shared   *shared
	learners uint32            // of the run, each of which has such models
	every    int               // steps from one average to the next
	idle     []int             // nodes that no group is left for: theirs is the last average, and no part of the next
	settled  bool              // models stay where they are between averages
	job      [sha256.Size]byte // as heads have it
	states   []tensor.Matrix   // what travels of a model beside its head: weights, then moments
	average  averaging

	// fresh says that what this node has is the last average.
	fresh bool
	// The last average, where it may have to be gone back to.
	kept    []byte
	at      state
	updates uint64

	buffers [2][][]byte // used in turn: one for each stop
	turn    int
	hops    []hop
	arrived chan error // of each hop that has where to come from, in order
	running sync.WaitGroup
}

// newLocal is nil where models are all the same.
func (t *learner) newLocal() (*local, error) {
	settings := &t.recipe.Sharing
	every, settled := settings.Averages(), settings.Strategy == strategy.Grappa
	if every < 2 {
		return nil, nil
	}
	if _, guides := t.shared.dealer.(strategy.Guide); !guides && !settled {
		return nil, fmt.Errorf("leap.sync_every=%d: the strategy %q has no models that travel: leave it out", settings.Leap.SyncEvery, t.shared.strategy)
	}
	l := &local{
		shared: t.shared, learners: uint32(len(t.learners)), every: every, settled: settled, job: t.recipe.digest(strategy.Work{}), // nodes come and go
		states: []tensor.Matrix{t.weights}, fresh: true,
	}
	if settled {
		schedule, err := grappa.NewSchedule(len(t.data.shards), &settings.Grappa, t.recipe.Seed)
		if err != nil {
			return nil, err
		}
		l.idle = without(&t.shared.layout, schedule)
	}
	t.device.Zero(t.gradients) // a node may have no roots in a step, and they must be finite
	for _, m := range t.optimizer.Moments() {
		l.states = append(l.states, m.Row)
	}
	if t.device.Type() == tensor.F64 {
		l.average = newAverager(l, t.optimizer, t.device.Read, t.device.Write, t.faultNow)
	} else {
		l.average = newAverager(l, t.optimizer, t.device.Read32, t.device.Write32, t.faultNow)
	}
	return l, nil
}

// models is by how many the roots of a batch are shared that one model learns from.
func (l *local) models() float64 {
	if l == nil {
		return 1
	}
	return float64(len(l.shared.work.Nodes) - len(l.idle))
}

// averaged says whether what this node has is what all have.
func (l *local) averaged() bool { return l == nil || l.fresh }

// rows is how many rows of weights are in hand where so many would be, if weights were
// all that travels and is added up.
func (l *local) rows(weights uint64) uint64 {
	if l == nil {
		return weights
	}
	return (weights + 1) * uint64(len(l.states)) // and the last average
}

// step is trainer.step's.
func (l *local) step(ctx context.Context, t *learner, s *slot, rate float64) (loss float64, reducing time.Duration, err error) {
	differ := !l.fresh
	l.keep(t)
	tour := l.tour
	if l.settled {
		tour = l.home
	} else {
		l.depart(ctx, t, s, differ)
		defer l.running.Wait()
	}
	loss, wrong, reducing, err := tour(ctx, t, s, rate)
	if err != nil {
		return loss, reducing, fmt.Errorf("epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
	}
	due := l.due(t, s)
	start := time.Now()
	pprof.SetGoroutineLabels(t.phases.reduce)
	l.average.next(due)
	loss, err = t.reduce(ctx, s, loss, wrong)
	pprof.SetGoroutineLabels(t.phases.compute)
	l.fresh = due && err == nil
	return loss, reducing + time.Since(start), err
}

// due says whether models are averaged after a step.
func (l *local) due(t *learner, s *slot) bool {
	return (s.step+1)%l.every == 0 || s.step+1 == t.batches.steps
}

// tour updates one model after the other, as they come. The loss of a slot is divided by
// how many roots a model has of the batch, whoever computes them: so slots with few do
// not count more.
func (l *local) tour(ctx context.Context, t *learner, s *slot, rate float64) (loss float64, wrong string, waited time.Duration, err error) {
	wrong = t.doubt()
	for i := range s.groups {
		start := time.Now()
		err := l.arrive(t, i)
		waited += time.Since(start)
		if err != nil {
			return loss, wrong, waited, err
		}
		// A model without roots here passes as it is, and so does one after something has
		// gone wrong.
		if len(s.groups[i].Roots) > 0 && wrong == "" {
			var sum float64
			t.device.Zero(t.gradients)
			sum, wrong = t.learn(s, &s.groups[i])
			loss += sum
			if ctx.Err() != nil { // and perhaps it has ended the pass
				return loss, wrong, waited, context.Cause(ctx)
			}
			if wrong == "" {
				t.optimizer.Step(t.weights, t.gradients, rate)
			}
		}
		if i < len(s.groups)-1 || !l.due(t, s) {
			l.pass(t, i)
		}
	}
	return loss, wrong, waited, nil
}

// home updates the model that is here, by all roots of this node: where groups train in
// isolation none travels.
func (l *local) home(ctx context.Context, t *learner, s *slot, rate float64) (loss float64, wrong string, waited time.Duration, err error) {
	wrong = t.doubt()
	roots := 0
	t.device.Zero(t.gradients)
	for i := range s.groups {
		if n := len(s.groups[i].Roots); n > 0 && wrong == "" {
			var sum float64
			sum, wrong = t.learn(s, &s.groups[i])
			loss, roots = loss+sum, roots+n
		}
		if ctx.Err() != nil { // and perhaps it has ended the pass
			return loss, wrong, 0, context.Cause(ctx)
		}
	}
	if roots > 0 && wrong == "" {
		t.optimizer.Step(t.weights, t.gradients, rate)
	}
	return loss, wrong, 0, nil
}

// keep copies the last average before it is trained on, if that is what is here.
func (l *local) keep(t *learner) {
	if !l.fresh {
		return
	}
	l.fresh = false
	if t.options.Dir == "" {
		return // there is no checkpoint that could want it
	}
	t.rest()
	l.kept = room(l.kept, l.bytes())
	l.read(t, l.kept)
	l.at, l.updates = t.at, t.optimizer.Steps()
}

// back goes back to the last average, unless what is here is that.
func (l *local) back(t *learner) {
	if l.averaged() || len(l.kept) == 0 || t.at.Diverged != nil {
		return
	}
	l.write(t, l.kept)
	t.optimizer.SetSteps(l.updates)
	t.at, l.fresh = l.at, true
}

// bytes is what a model's state takes.
func (l *local) bytes() int {
	return len(l.states) * l.states[0].Cols * l.states[0].Type.Bytes()
}

// read sets memory to the state of the model that is here.
func (l *local) read(t *learner, to []byte) {
	n := len(to) / len(l.states)
	for i, m := range l.states {
		readRows(t.device, to[i*n:][:n], m)
	}
}

// write is the reverse.
func (l *local) write(t *learner, from []byte) {
	n := len(from) / len(l.states)
	for i, m := range l.states {
		writeRows(t.device, m, from[i*n:][:n])
	}
}
