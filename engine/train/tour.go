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
// end. They travel as they are said to, and what has come is what is computed with.
type tour struct {
	shared *shared
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
	slot, from int
	buffer     []byte
}

// begin sets out on the tour of a step, if there is one.
func (o *tour) begin(ctx context.Context, t *learner, s *slot) {
	o.stops = o.stops[:0]
	for i := range s.groups {
		if g := &s.groups[i]; i == 0 || g.Slot != s.groups[i-1].Slot {
			o.stops = append(o.stops, stop{slot: g.Slot, from: g.From})
		}
	}
	if len(o.stops) < 2 {
		return
	}
	o.turn = 1 - o.turn
	for i := range o.stops {
		if i == len(o.buffers[o.turn]) {
			o.buffers[o.turn] = append(o.buffers[o.turn], room(nil, t.weights.Cols*t.weights.Type.Bytes()))
		}
		o.stops[i].buffer = o.buffers[o.turn][i]
	}
	if cap(o.arrived) < len(o.stops) {
		o.arrived = make(chan error, len(o.stops))
	}
	readRows(t.device, o.stops[0].buffer, t.weights)
	tag := t.modelTag(s, 0)
	o.running.Go(func() { o.travel(ctx, t, tag, &s.tally) })
}

func (o *tour) travel(ctx context.Context, t *learner, tag exchange.Tag, tally *strategy.Tally) {
	for i := range o.stops {
		at := &o.stops[i]
		if i > 0 {
			tag.Index = t.slotIndex(o.stops[i-1].slot)
			err := o.shared.exchange.Take(ctx, at.from, strategy.Model, tag, at.buffer, tally)
			if err != nil {
				err = fmt.Errorf("take over the model of slot %d from node %s: %w", at.slot, o.shared.name(at.from), err)
			}
			o.arrived <- err
			if err != nil {
				return
			}
		}
		if i < len(o.stops)-1 { // nobody comes for what is held last
			tag.Index = t.slotIndex(at.slot)
			o.shared.exchange.Offer(tag, at.buffer)
		}
	}
}

// arrive waits for the model of a stop and computes with it from then on.
func (o *tour) arrive(t *learner, n int) error {
	if err := <-o.arrived; err != nil { // which ctx ends, too
		return err
	}
	writeRows(t.device, t.weights, o.stops[n].buffer)
	return nil
}

// modelTag is that of the model after a slot. Each learner has its own.
func (t *learner) modelTag(s *slot, slot int) exchange.Tag {
	return exchange.Tag{Epoch: uint32(t.at.Epoch), Step: uint32(s.step), Lane: exchange.LaneModel, Index: t.slotIndex(slot)}
}

func (t *learner) slotIndex(slot int) uint32 { return uint32(slot*len(t.learners) + t.index) }

// end waits for what begin has started.
func (o *tour) end() { o.running.Wait() }
