package train

import (
	"context"
	"fmt"
	"math"
	"runtime/pprof"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
)

// unsound is the flag of a note that says that what a node has made of a step is not
// finite.
const unsound uint64 = 1

// step trains one batch. It returns the sum of the losses of its rows, and how long of
// that it was exchanging with other nodes.
func (t *learner) step(ctx context.Context, s *slot, rate float64) (loss float64, reducing time.Duration, err error) {
	if t.local != nil {
		return t.local.step(ctx, t, s, rate)
	}
	if t.piped != nil {
		return t.piped.step(ctx, t, s, rate)
	}
	loss, wrong, reducing, err := t.compute(ctx, s)
	if err != nil {
		return loss, reducing, err
	}
	if wrong != "" && t.shared == nil {
		return loss, reducing, t.diverged(s, wrong)
	}
	if t.isolated != nil && t.sums == nil {
		t.normalise(s, s.weight())
	}
	if t.sums != nil {
		start := time.Now()
		pprof.SetGoroutineLabels(t.phases.reduce)
		loss, err = t.reduce(ctx, s, loss, wrong)
		pprof.SetGoroutineLabels(t.phases.compute)
		reducing += time.Since(start)
		if err != nil {
			return loss, reducing, err
		}
	}
	if t.front != nil {
		if err := t.front.Done(ctx, s.front); err != nil {
			return loss, reducing, err
		}
	}
	t.older.keep(t.at.Step)
	t.optimizer.Step(t.weights, t.gradients, rate)
	return loss, reducing, nil
}

// compute adds up the gradients and the losses of this node's groups, each with the
// model that has come for it. wrong says what is not finite. Waiting for models counts
// as exchanging.
func (t *learner) compute(ctx context.Context, s *slot) (loss float64, wrong string, waited time.Duration, err error) {
	t.device.Zero(t.gradients)
	wrong = t.doubt()
	if t.sums != nil {
		t.sums.begin(s.spans, t.dealing.self)
	}
	if t.front != nil {
		if err := t.front.begin(ctx, t, s); err != nil {
			return 0, "", 0, err
		}
	}
	stop := 0
	if t.shared != nil {
		t.tour.begin(ctx, t, s)
		defer t.tour.end()
	}
	for i := range s.groups {
		g := &s.groups[i]
		if i > 0 && g.Slot != s.groups[i-1].Slot {
			stop++
			start := time.Now()
			err := t.tour.arrive(t, stop)
			waited += time.Since(start)
			if err != nil {
				return loss, wrong, waited, fmt.Errorf("epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
			}
		}
		if ctx.Err() != nil {
			break
		}
		// An empty group computes nothing, and neither does one after something has gone
		// wrong: but others count on its sums and on its model.
		if len(g.Roots) == 0 {
			continue
		}
		if wrong == "" {
			var sum float64
			sum, wrong = t.learn(s, g)
			loss += sum
		}
		if s.spans != nil {
			t.sums.grain(g.Grain)
			t.device.Zero(t.gradients)
		}
	}
	if ctx.Err() != nil { // and perhaps it has ended a pass: what there is is no step's
		return loss, wrong, waited, context.Cause(ctx)
	}
	if err := t.faultNow(); err != nil {
		return loss, wrong, waited, err
	}
	if t.front != nil {
		err = t.front.end(ctx, t, s)
		waited += t.front.Waited()
	}
	return loss, wrong, waited, err
}

// learn adds the gradient of one group, and returns the sum of the losses of its rows.
// If the pass was ended, it does some of that.
func (t *learner) learn(s *slot, g *group) (loss float64, wrong string) {
	t.work.Reset()
	t.pass.Key = t.key(s)
	z := t.forward(s, g)
	if z.None() {
		return 0, ""
	}
	dz := t.work.Alloc(t.device.Type(), z.Rows, z.Cols)
	finite := false
	t.question()
	loss = t.loss(dz, z, g.labels, t.local.models()/float64(len(s.roots)))
	if isNumber(loss) {
		t.scaleBy(g, dz)
		t.backward(s, g, dz)
		finite = t.device.Finite(t.gradients)
	}
	loss, finite = t.answered(loss, finite)
	switch {
	case !isNumber(loss):
		return loss, "the loss"
	case !finite:
		return loss, "a gradient"
	}
	if s.spans != nil {
		// So that losses add up to the same in any order.
		const unit = 1 << 24
		loss = math.Round(loss*unit) / unit
	}
	return loss, ""
}

// reduce makes the gradient that of all nodes, and the loss, too. Where something went
// wrong on a node, all come to the same end.
func (t *learner) reduce(ctx context.Context, s *slot, loss float64, wrong string) (float64, error) {
	r := exchange.Round{
		Tag:   exchange.Tag{Epoch: uint32(t.at.Epoch), Step: uint32(s.step), Index: uint32(t.index)},
		Note:  exchange.Note{Loss: loss},
		Tally: &s.tally,
	}
	if wrong != "" {
		r.Note.Flags |= unsound
	}
	weight := uint64(0)
	if t.isolated != nil && t.local == nil {
		weight = s.weight()
		r.Note.Flags |= weight << 1
	}
	notes, err := t.sums.total(ctx, r)
	if err != nil {
		return loss, fmt.Errorf("add up the gradients of epoch %d, step %d: %w", t.at.Epoch, s.step+1, err)
	}
	for node, note := range notes {
		if note.Flags&unsound == 0 {
			continue
		}
		if node == t.shared.work.Self {
			return loss, t.diverged(s, wrong)
		}
		return loss, t.divergedThere(s, node)
	}
	if t.shared != nil {
		loss, weight = 0, 0
		for _, note := range notes {
			loss += note.Loss
			weight += note.Flags >> 1
		}
	}
	if t.isolated != nil && t.local == nil {
		t.normalise(s, weight)
	}
	if !t.device.Finite(t.gradients) {
		return loss, t.diverged(s, "the sum of the gradients")
	}
	return loss, nil
}

// slots counts those that a step has on this node.
func (s *slot) slots() int {
	n := 0
	for i := range s.groups {
		if i == 0 || s.groups[i].Slot != s.groups[i-1].Slot {
			n++
		}
	}
	return n
}

func isNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// sound says whether all that the next step begins with is finite.
func (t *learner) sound() bool {
	sound := t.device.Finite(t.weights)
	for _, m := range t.optimizer.Moments() {
		sound = sound && t.device.Finite(m.Row)
	}
	return sound
}
