package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

const (
	// messages is the first Index of evaluation's messages: those below are training's.
	messages     = 1 << 20
	meetMessage  = messages
	scoreMessage = messages + 1
	// patience is how long an answer that makes no progress may take.
	patience = 10 * time.Second
	// indices is how many there are for what evaluation offers.
	indices = 1 << 24
)

// windowBytes is about how much is taken at once. All nodes have the same.
var windowBytes = 32 << 20

// An evaluation is the one that is under way. Its tags are those of a step after the
// epoch's last: each model of a sweep has its own.
type evaluation struct {
	epoch, step uint32
	offered     []exchange.Tag

	// What takers wait by: it ends with parent, and with the first of them that fails.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
}

// begin begins an evaluation.
func (h *halo) begin(ctx context.Context, epoch, step int) {
	u := &h.under
	u.epoch, u.step = uint32(epoch), uint32(step)
	if u.parent != ctx || u.ctx.Err() != nil {
		h.cancel()
		u.parent = ctx
		u.ctx, u.cancel = context.WithCancelCause(ctx)
	}
	h.tally.Reset()
}

func (h *halo) cancel() {
	if h.under.cancel != nil {
		h.under.cancel(nil)
	}
}

// end ends it: all have what they want of it or, where it failed, this run is over. What
// is mapped must not go while somebody reads it, and who reads is not waited for longer
// than it takes to see that a connection is dead. Other memory lives as long as it is
// read: after a failure it stays on offer, since others may go on with it for a while.
func (h *halo) end(ctx context.Context, failed bool) error {
	mapped := slices.ContainsFunc(h.mapped, func(t *table) bool { return t != nil })
	if failed && !mapped {
		return nil
	}
	if mapped {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
	}
	var read error
	for _, t := range h.under.offered {
		read = errors.Join(read, h.shared.exchange.Withdraw(ctx, t))
	}
	h.under.offered = h.under.offered[:0]
	return errors.Join(h.unmap(read), read)
}

// What is offered: the rows of each stage by its number, then these.
const (
	whichRows = iota // that a node wants of another
	valLogits
	testLogits
	kindsOffered
)

// A parcel is what one node offers to another, or to all: rows of some bytes each.
type parcel struct {
	what int // a stage, or the number of stages and one of the above
	to   int // whom it is for; for all: 0
	row  int // bytes
}

// windows says how a parcel of some bytes is offered: in how many bytes at a time.
// Their tags are numbered by what, to and place, of which there is room for so many.
func (h *halo) window(p parcel, bytes int) (window, room int) {
	room = max(1, indices/((len(h.stages)+kindsOffered)*len(h.shared.work.Nodes)))
	rows := max(1, windowBytes/p.row, (bytes/p.row+room-1)/room)
	return rows * p.row, room
}

func (h *halo) tag(p parcel, room, place int) exchange.Tag {
	return exchange.Tag{
		Epoch: h.under.epoch, Step: h.under.step, Lane: exchange.LaneHalo,
		Index: uint32((p.what*len(h.shared.work.Nodes)+p.to)*room + place),
	}
}

// offer offers a parcel, which stays as it is until the end of the evaluation.
func (h *halo) offer(p parcel, b []byte) {
	window, room := h.window(p, len(b))
	for place := 0; len(b) > 0; place++ {
		n := min(window, len(b))
		t := h.tag(p, room, place)
		h.shared.exchange.Offer(t, b[:n:n])
		h.under.offered = append(h.under.offered, t)
		b = b[n:]
	}
}

// A taker takes parcels of one node, in a goroutine of its own.
type taker struct {
	halo *halo
	node int
	run  func() // made once, so that starting it allocates nothing

	parcel parcel // what is to be taken, if to is not empty
	kind   strategy.Kind
	to     []byte
}

func newTaker(h *halo, node int) *taker {
	t := &taker{halo: h, node: node}
	t.run = func() {
		defer h.running.Done()
		if err := t.take(); err != nil {
			h.under.cancel(err)
		}
	}
	return t
}

// take takes a parcel, window by window.
func (t *taker) take() error {
	window, room := t.halo.window(t.parcel, len(t.to))
	for place, to := 0, t.to; len(to) > 0; place++ {
		n := min(window, len(to))
		if err := t.one(t.halo.tag(t.parcel, room, place), to[:n]); err != nil {
			return err
		}
		to = to[n:]
	}
	return nil
}

// one takes one window.
func (t *taker) one(tag exchange.Tag, to []byte) error {
	h := t.halo
	if err := h.shared.exchange.Take(h.under.ctx, t.node, t.kind, tag, to, &h.tally); err != nil {
		return fmt.Errorf("take %s from node %s: %w", h.called(t.parcel.what), h.shared.work.Nodes[t.node], err)
	}
	return nil
}

// called is how a sentence calls what is taken.
func (h *halo) called(what int) string {
	switch what - len(h.stages) {
	case whichRows:
		return "the list of vertices whose rows it needs"
	case valLogits, testLogits:
		return "the logits that are ranked"
	}
	return "the rows after " + h.stages[what]
}

// take takes what all takers were set to, at once. Afterwards none is set.
func (h *halo) take() error {
	for _, t := range h.takers {
		if len(t.to) > 0 {
			h.running.Add(1)
			go t.run()
		}
	}
	h.running.Wait()
	for _, t := range h.takers {
		t.to = nil
	}
	return context.Cause(h.under.ctx)
}
