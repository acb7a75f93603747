package train

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A tour moves models from node to node between the slots of a step. A node passes on
// what has come for a slot at once, before it computes with it: so a hop hides behind
// the computing of the slot before.
//
// Within a step all models are the same bits, since they are updated together at its
// end. They travel as they are said to, in the frames of all models that do, and what
// has come is what is computed with.
type tour struct {
	shared *shared
	of     head // what is the same in all frames of a step
	// What others may still take lies in one of two sets of buffers, which are used in
	// turn: a buffer for each stop.
	buffers [2][][]byte
	turn    int
	stops   []stop
	// arrived is told of each stop but the first, in order.
	arrived chan error
	running sync.WaitGroup
}

// A stop is a slot of this node, and where its model comes from.
type stop struct {
	slot, model, from int
	buffer            []byte // a frame
}

// begin sets out on the tour of a step, if there is one.
func (o *tour) begin(ctx context.Context, t *learner, s *slot) {
	o.stops = o.stops[:0]
	for i := range s.groups {
		if g := &s.groups[i]; i == 0 || g.Slot != s.groups[i-1].Slot {
			o.stops = append(o.stops, stop{slot: g.Slot, model: g.Model, from: g.From})
		}
	}
	if len(o.stops) < 2 {
		return
	}
	if o.of.length == 0 {
		o.of = head{job: t.recipe.digest(strategy.Work{}), rows: 1, length: uint64(t.weights.Cols * t.weights.Type.Bytes())}
	}
	o.of.epoch, o.of.step, o.of.updates = uint32(t.at.Epoch), uint32(s.step), t.optimizer.Steps()
	o.turn = 1 - o.turn
	for i := range o.stops {
		if i == len(o.buffers[o.turn]) {
			o.buffers[o.turn] = append(o.buffers[o.turn], room(nil, headSize+int(o.of.length)))
		}
		o.stops[i].buffer = o.buffers[o.turn][i]
	}
	if cap(o.arrived) < len(o.stops) {
		o.arrived = make(chan error, len(o.stops))
	}
	readRows(t.device, o.stops[0].buffer[headSize:], t.weights)
	tag := t.modelTag(s, 0)
	o.running.Go(func() { o.travel(ctx, t, tag, &s.tally) })
}

// travel takes models over and passes them on. What has come is whole, and the one that
// is wanted: so nothing else is passed on either.
func (o *tour) travel(ctx context.Context, t *learner, tag exchange.Tag, tally *strategy.Tally) {
	for i := range o.stops {
		at, of := &o.stops[i], o.of
		of.model = uint32(at.model)
		if i > 0 {
			of.slot = uint32(o.stops[i-1].slot)
			tag.Index = t.slotIndex(o.stops[i-1].slot)
			err := o.shared.exchange.Take(ctx, at.from, strategy.Model, tag, at.buffer, tally)
			if err == nil {
				err = o.open(at.buffer, of)
			}
			if err != nil {
				err = fmt.Errorf("take over model %d for slot %d from node %s: %w", at.model, at.slot, o.shared.name(at.from), err)
			}
			o.arrived <- err
			if err != nil {
				return
			}
		}
		if i < len(o.stops)-1 { // nobody comes for what is held last
			of.slot = uint32(at.slot)
			tag.Index = t.slotIndex(at.slot)
			of.seal(at.buffer)
			o.shared.exchange.Offer(tag, at.buffer)
		}
	}
}

// open checks what has come: of as many updates as this node has made, too.
func (o *tour) open(frame []byte, want head) error {
	came, err := openFrame(frame, want)
	if err == nil && came.updates != want.updates {
		return fmt.Errorf("model %d came with %d updates in place of %d", came.model, came.updates, want.updates)
	}
	return err
}

// arrive waits for the model of a stop and computes with it from then on.
func (o *tour) arrive(t *learner, n int) error {
	if err := <-o.arrived; err != nil { // which ctx ends, too
		return err
	}
	writeRows(t.device, t.weights, o.stops[n].buffer[headSize:])
	return nil
}

// modelTag is that of the model after a slot. Each learner has its own.
func (t *learner) modelTag(s *slot, slot int) exchange.Tag {
	return exchange.Tag{Epoch: uint32(t.at.Epoch), Step: uint32(s.step), Lane: exchange.LaneModel, Index: t.slotIndex(slot)}
}

func (t *learner) slotIndex(slot int) uint32 { return uint32(slot*len(t.learners) + t.index) }

// end waits for what begin has started.
func (o *tour) end() { o.running.Wait() }
