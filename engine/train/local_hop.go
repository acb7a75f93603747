package train

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A hop is a slot of this node, and where its model comes from.
type hop struct {
	tag    exchange.Tag // of the slot: what is offered when it is done
	model  int
	from   int          // -1: the model is here
	before exchange.Tag // what its model was offered under there
	buffer []byte       // what has come, and then what is offered
	came   head
}

// depart sets out on the tour of a step: models are taken over as soon as they can be,
// while those before them are computed with. differ says whether the step before has
// left each node another model.
func (l *local) depart(ctx context.Context, t *learner, s *slot, differ bool) {
	l.turn = 1 - l.turn
	l.hops = l.hops[:0]
	for i := range s.groups {
		g := &s.groups[i]
		h := hop{
			tag:   t.modelTag(s, g.Slot),
			model: g.Model, from: g.From,
		}
		if i > 0 {
			h.before = l.hops[i-1].tag
		}
		if i == len(l.buffers[l.turn]) {
			l.buffers[l.turn] = append(l.buffers[l.turn], nil)
		}
		h.buffer = room(l.buffers[l.turn][i], headSize+l.bytes())
		l.buffers[l.turn][i] = h.buffer
		l.hops = append(l.hops, h)
	}
	if differ {
		l.relocate(t, s)
	}
	if cap(l.arrived) < len(l.hops) {
		l.arrived = make(chan error, len(l.hops))
	}
	l.running.Go(func() { l.travel(ctx, &s.tally) })
}

// relocate says where the model of the first slot was last, in the step before.
func (l *local) relocate(t *learner, s *slot) {
	first, last := &l.hops[0], &l.hops[len(l.hops)-1]
	from := t.dealing.after(t.batches.roots(s.step-1), first.model)
	if from == l.shared.work.Self {
		return
	}
	first.from, first.before = from, last.tag // a step has as many slots as the one before
	first.before.Step--
}

// travel takes models over. What has come is whole, and the one that is wanted.
func (l *local) travel(ctx context.Context, tally *strategy.Tally) {
	for i := range l.hops {
		h := &l.hops[i]
		if h.from < 0 {
			continue
		}
		err := l.shared.exchange.Take(ctx, h.from, strategy.Model, h.before, h.buffer, tally)
		if err == nil {
			h.came, err = openFrame(h.buffer, l.head(h.before, h.model))
		}
		if err != nil {
			err = fmt.Errorf("take over model %d for slot %d from node %s: %w", h.model, l.slot(h.tag), l.shared.name(h.from), err)
		}
		l.arrived <- err
		if err != nil {
			return
		}
	}
}

// arrive waits for the model of a slot, and computes with it from then on.
func (l *local) arrive(t *learner, n int) error {
	h := &l.hops[n]
	if h.from < 0 {
		return nil
	}
	if err := <-l.arrived; err != nil { // which the context ends, too
		return err
	}
	l.write(t, h.buffer[headSize:])
	t.optimizer.SetSteps(h.came.updates)
	return nil
}

// pass lets the next node have the model of a slot. It is kept until that node is done
// with its step.
func (l *local) pass(t *learner, n int) {
	h := &l.hops[n]
	l.read(t, h.buffer[headSize:])
	of := l.head(h.tag, h.model)
	of.updates = t.optimizer.Steps()
	of.seal(h.buffer)
	l.shared.exchange.Offer(h.tag, h.buffer)
}

// slot is that of a tag.
func (l *local) slot(tag exchange.Tag) uint32 { return tag.Index / l.learners }

// head is that of a model which is offered under a tag, but for its updates.
func (l *local) head(tag exchange.Tag, model int) head {
	return head{
		job: l.job, epoch: tag.Epoch, step: tag.Step, slot: l.slot(tag), model: uint32(model),
		rows: uint32(len(l.states)), length: uint64(l.bytes()),
	}
}
