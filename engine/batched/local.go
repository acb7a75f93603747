package batched

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Locals implements updates: it updates models separately, after each slot or step, and averages them every
// few steps and at the end of each epoch.
type Locals struct {
	b     *Batched
	every int  // steps from one average to the next
	home  bool // models stay where they are between averages
	idle  []int
	All   []*Local // of each learner
}

// Local is one learner's model on this node: weights, moments, and the number of
// updates. There are as many models as nodes that learn. They differ between averages,
// so a node takes a model, with all its state, from the node where it was before.
//
// Only after an average do all nodes have the same model. A checkpoint holds that: an
// interrupted run goes back to the last average, and loses the steps since then, which
// are fewer than leap.sync_every.
//
// Nodes exchange the loss of each step at its end, as they do where gradients are added
// up. So no node is a step ahead of one that has yet to take a model from it, and two
// sets of model buffers are enough.
type Local struct {
	locals  *Locals
	job     [sha256.Size]byte // as heads have it
	States  []tensor.Matrix   // what travels of a model beside its head: weights, then moments
	average averaging

	// fresh means that this node's model is the last average.
	fresh bool
	// The last average, where a run may have to go back to it.
	kept    []byte
	at      trained.State
	updates uint64

	buffers [2][][]byte // used in turn: one for each stop
	turn    int
	hops    []hop
	arrived chan error // of each hop that has a source, in order
	running sync.WaitGroup
}

// NewTours makes models tour the nodes between averages, as the dealer guides them.
func NewTours(b *Batched, every int) *Locals { return &Locals{b: b, every: every} }

// NewHomes makes models stay where they are between averages. Idle nodes have no
// groups: theirs is the last average, and no part of the next.
func NewHomes(b *Batched, every int, idle []int) *Locals {
	return &Locals{b: b, every: every, home: true, idle: idle}
}

// Attach implements updates.
func (u *Locals) Attach(t *train.Learner) error {
	if _, guides := t.Run.Sharing.Dealer.(deal.Guide); !guides && !u.home {
		return fmt.Errorf("leap.sync_every=%d: the strategy %q has no models that travel: leave it out", u.every, t.Run.Sharing.Strategy)
	}
	l := &Local{
		locals: u, job: t.Recipe.Digest(peer.Work{}), // nodes come and go
		States: []tensor.Matrix{t.Weights}, fresh: true,
	}
	t.Run.Device.Zero(t.Gradients) // a node may have no roots in a step, and they must be finite
	for _, m := range t.Optimizer.Moments() {
		l.States = append(l.States, m.Row)
	}
	if t.Run.Device.Type() == tensor.F64 {
		l.average = newAverager(l, t.Optimizer, t.Run.Device.Read, t.Run.Device.Write, t.Fault)
	} else {
		l.average = newAverager(l, t.Optimizer, t.Run.Device.Read32, t.Run.Device.Write32, t.Fault)
	}
	u.All = append(u.All, l)
	return nil
}

// Sums implements updates.
func (u *Locals) Sums(t *train.Learner) sums { return u.All[t.Index].average }

// Common implements updates.
func (u *Locals) Common(t *train.Learner) bool { return u.All[t.Index].fresh }

// Back implements updates.
func (u *Locals) Back(t *train.Learner) { u.All[t.Index].Back(t) }

// Models implements updates: idle nodes learn nothing.
func (u *Locals) Models(*train.Learner) float64 {
	return float64(len(u.b.Run.Session.Work.Nodes) - len(u.idle))
}

// Rows implements updates: weights and moments travel and are added up, and the last
// average is kept.
func (u *Locals) Rows(t *train.Learner, weights uint64) uint64 {
	return (weights + 1) * uint64(len(u.All[t.Index].States))
}

// Step implements updates.
func (u *Locals) Step(ctx context.Context, t *train.Learner, s *slot.Slot, _ []*slot.Slot, rate float64) (loss float64, reducing time.Duration, err error) {
	l := u.All[t.Index]
	differ := !l.fresh
	l.keep(t)
	update := l.tour
	if u.home {
		update = l.home
	} else {
		l.depart(ctx, t, s, differ)
		defer l.running.Wait()
	}
	loss, wrong, reducing, err := update(ctx, t, s, rate)
	if err != nil {
		return loss, reducing, fmt.Errorf("epoch %d, step %d: %w", t.At.Epoch, s.Step+1, err)
	}
	due := l.due(t, s)
	start := time.Now()
	pprof.SetGoroutineLabels(t.Run.Phases.Reduce)
	l.average.Next(due)
	loss, err = u.b.reduce(ctx, t, s, equal{}, loss, wrong)
	pprof.SetGoroutineLabels(t.Run.Phases.Compute)
	l.fresh = due && err == nil
	return loss, reducing + time.Since(start), err
}

// due reports whether models are averaged after a step.
func (l *Local) due(t *train.Learner, s *slot.Slot) bool {
	return (s.Step+1)%l.locals.every == 0 || s.Step+1 == t.Run.Batches.Steps
}

// tour updates one model after the other, as they arrive. The loss of a slot is divided
// by the model's roots in the batch, over all nodes, so that slots with few roots do
// not count more.
func (l *Local) tour(ctx context.Context, t *train.Learner, s *slot.Slot, rate float64) (loss float64, wrong string, waited time.Duration, err error) {
	wrong = t.Doubt()
	for i := range s.Groups {
		start := time.Now()
		err := l.Arrive(t, i)
		waited += time.Since(start)
		if err != nil {
			return loss, wrong, waited, err
		}
		// A model without roots here passes unchanged, and so does one after an error.
		if len(s.Groups[i].Roots) > 0 && wrong == "" {
			var sum float64
			t.Run.Device.Zero(t.Gradients)
			sum, wrong = l.locals.b.Learn(t, s, &s.Groups[i])
			loss += sum
			if ctx.Err() != nil { // the pass may be cut short
				return loss, wrong, waited, context.Cause(ctx)
			}
			if wrong == "" {
				t.Optimizer.Step(t.Weights, t.Gradients, rate)
			}
		}
		if i < len(s.Groups)-1 || !l.due(t, s) {
			l.pass(t, i)
		}
	}
	return loss, wrong, waited, nil
}

// home updates the local model by all roots of this node: where groups train in
// isolation no model travels.
func (l *Local) home(ctx context.Context, t *train.Learner, s *slot.Slot, rate float64) (loss float64, wrong string, waited time.Duration, err error) {
	wrong = t.Doubt()
	roots := 0
	t.Run.Device.Zero(t.Gradients)
	for i := range s.Groups {
		if n := len(s.Groups[i].Roots); n > 0 && wrong == "" {
			var sum float64
			sum, wrong = l.locals.b.Learn(t, s, &s.Groups[i])
			loss, roots = loss+sum, roots+n
		}
		if ctx.Err() != nil { // the pass may be cut short
			return loss, wrong, 0, context.Cause(ctx)
		}
	}
	if roots > 0 && wrong == "" {
		t.Optimizer.Step(t.Weights, t.Gradients, rate)
	}
	return loss, wrong, 0, nil
}

// keep copies the last average before it is trained on, if the local model is that.
func (l *Local) keep(t *train.Learner) {
	if !l.fresh {
		return
	}
	l.fresh = false
	if t.Run.Options.Dir == "" {
		return // no checkpoint will need it
	}
	t.Clock()
	l.kept = plain.Grow(l.kept, l.Bytes())
	l.Read(t, l.kept)
	l.at, l.updates = t.At, t.Optimizer.Steps()
}

// Back restores the last average, unless the local model is that.
func (l *Local) Back(t *train.Learner) {
	if l.fresh || len(l.kept) == 0 || t.At.Diverged != nil {
		return
	}
	l.write(t, l.kept)
	t.Optimizer.SetSteps(l.updates)
	t.At, l.fresh = l.at, true
}

// Bytes returns the size of a model's state.
func (l *Local) Bytes() int {
	return len(l.States) * l.States[0].Cols * l.States[0].Type.Bytes()
}

// Read copies the state of the local model to memory.
func (l *Local) Read(t *train.Learner, to []byte) {
	n := len(to) / len(l.States)
	for i, m := range l.States {
		plain.Read(t.Run.Device, to[i*n:][:n], m)
	}
}

// write restores the state of the local model from memory.
func (l *Local) write(t *train.Learner, from []byte) {
	n := len(from) / len(l.States)
	for i, m := range l.States {
		plain.Write(t.Run.Device, m, from[i*n:][:n])
	}
}

// averaging is the sums of a run whose models differ.
type averaging interface {
	sums
	// Next sets whether the next Total averages the models, or only exchanges the
	// notes.
	Next(due bool)
}

// An averager implements averaging in the device's own numbers.
type averager[T exchange.Number] struct {
	exchange  *exchange.Exchange
	states    []tensor.Matrix
	optimizer *nn.Optimizer
	from      func(to []T, m tensor.Matrix)
	to        func(m tensor.Matrix, from []T)
	fault     func() error // as an adder's

	row   []T // this node's part, then the average
	mine  [1][]T
	nodes T     // that learn
	idle  []int // the others
	out   bool  // this node is idle
	due   bool
}

func newAverager[T exchange.Number](l *Local, o *nn.Optimizer, from func([]T, tensor.Matrix), to func(tensor.Matrix, []T), fault func() error) *averager[T] {
	return &averager[T]{
		exchange: l.locals.b.Run.Session.Exchange, states: l.States, optimizer: o, from: from, to: to, fault: fault,
		row: make([]T, len(l.States)*l.States[0].Cols), nodes: T(l.locals.Models(nil)), idle: l.locals.idle, out: slices.Contains(l.locals.idle, l.locals.b.Run.Session.Work.Self),
	}
}

// Next implements averaging.
func (a *averager[T]) Next(due bool) { a.due = due }

// Begin implements sums: there are no grains, since the models that learn from them
// differ.
func (a *averager[T]) Begin([][]exchange.Span, int) {}

// Grain implements sums.
func (a *averager[T]) Grain(int) {}

// Total implements sums: it sets the local model to the average of those of all nodes
// that learn. The number of its updates is their mean, rounded to the nearest number,
// since models have had more or fewer slots without roots. These numbers travel in the
// flags of the notes, above those of Batched.reduce. If something went wrong on a node,
// the model is unchanged.
func (a *averager[T]) Total(ctx context.Context, r exchange.Round) ([]exchange.Note, error) {
	r.Note.Flags |= a.optimizer.Steps() << 1
	row := a.row[:0]
	if a.due {
		row = a.row
		a.Read(row)
	}
	if err := a.fault(); err != nil {
		return nil, err
	}
	a.mine[0] = row
	notes, err := exchange.Reduce(ctx, a.exchange, r, a.mine[:], row)
	if err != nil || !a.due {
		return notes, err
	}
	updates, nodes := uint64(0), uint64(a.nodes)
	for node, note := range notes {
		if note.Flags&train.Unsound != 0 {
			return notes, nil
		}
		if !slices.Contains(a.idle, node) {
			updates += note.Flags >> 1
		}
	}
	n := a.states[0].Cols
	for i, m := range a.states {
		a.to(m, row[i*n:][:n])
	}
	a.optimizer.SetSteps((updates + nodes/2) / nodes)
	return notes, nil
}

// Read sets a row to this node's part of the average.
func (a *averager[T]) Read(row []T) {
	if a.out {
		clear(row)
		return
	}
	n := a.states[0].Cols
	for i, m := range a.states {
		a.from(row[i*n:][:n], m)
	}
	for i := range row {
		row[i] /= a.nodes
	}
}
