package exchange

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Tag names an offer of a node. Epoch counts from 1, Step from 0. Lane separates the
// offers of a step: its users agree on numbers (see the lanes below). Index is up to
// them.
type Tag struct {
	Epoch, Step uint32
	Lane        uint8
	Index       uint32 // below 1<<24
}

// The lanes.
const (
	LaneReduce   uint8 = iota // Reduce: each node's rows
	LaneSum                   // Reduce: the sums of shares
	LaneMessages              // Gather
	LaneModel                 // leap: models between slots; Index is the slot, and the model of a sweep
	LanePartial               // p3: partial sums of the first layer
	LaneError                 // p3: their errors
	LaneBlock                 // p3: first blocks
	LaneHalo                  // evaluation: rows between layers; Index is the stage
	LanePartOdd               // p3: LanePartial of odd steps, where several are under way
	LaneLearnt                // gradients of learnt rows; Index 0 is their length, then windows of them
)

// A Tag's Lane and Index share the 32 bits that a question has for them.
const indexBits = 24

func (t Tag) part() uint32 {
	if t.Index >= 1<<indexBits {
		panic(fmt.Sprintf("exchange: an index of %d", t.Index))
	}
	return uint32(t.Lane)<<indexBits | t.Index
}

func tagOf(q peer.Query) Tag {
	return Tag{Epoch: q.Epoch, Step: q.Step, Lane: uint8(q.Part >> indexBits), Index: q.Part & (1<<indexBits - 1)}
}

func (t Tag) String() string {
	return fmt.Sprintf("epoch %d, step %d, lane %d, index %d", t.Epoch, t.Step, t.Lane, t.Index)
}

// An Exchange is one node's offers, and its access to those of the others. Any number
// of goroutines may offer and take; one at a time may call Reduce, and one Gather.
type Exchange struct {
	peers peer.Peers
	work  peer.Work

	mu       sync.Mutex
	lanes    map[uint8]*lane
	idle     []*waiter
	slips    []*[][]byte // the parts of answers, for reuse
	retiring []retirement

	sums     summing
	messages [2]round // of the latest Gather and of that before
	gathers  int
}

// New registers the service, before peers.Open.
func New(peers peer.Peers, work peer.Work) *Exchange {
	x := &Exchange{peers: peers, work: work, lanes: map[uint8]*lane{}}
	x.sums.init(x)
	for i := range x.messages {
		x.messages[i].init(x)
	}
	peers.Answer(peer.Offers, x.answer)
	return x
}

// Offer offers parts, joined, to all others under a tag: now, or when they ask, as
// often as they do. The parts must not change until Withdraw, or until the Exchange is
// used for a step that all nodes begin only after having taken them. An offer may be
// dropped when its Epoch and Step are those of two steps before or older. Only steps
// with an offer in that lane count, so lanes may run ahead of each other.
func (x *Exchange) Offer(t Tag, parts ...[]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.blank(t.Lane, 0)
	o.rows = append(o.rows, parts...)
	x.publish(t, o)
}

// Withdraw ends an offer, and returns when nobody reads its parts any more. Later
// questions for it are refused.
func (x *Exchange) Withdraw(ctx context.Context, t Tag) error {
	quiet := x.withdraw(t)
	if quiet == nil {
		return nil
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until nobody reads the offer of %s: %w", t, context.Cause(ctx))
	}
}

// Retire withdraws all offers of some lanes for good, and has free called when nobody reads
// them any more: now, or by the last answer that is being written. Whoever ends the peers'
// session waits for that one.
func (x *Exchange) Retire(free func(), lanes ...uint8) {
	if x.retire(lanes, free) {
		free()
	}
}

// Heard waits until somebody has asked for what is offered under a tag. Who asks for one
// offer after the other, in an order that all know, has taken those before.
func (x *Exchange) Heard(ctx context.Context, t Tag) error {
	w := x.listen(t)
	if w == nil {
		return nil
	}
	defer x.rest(w)
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until somebody asks for the offer of %s: %w", t, context.Cause(ctx))
	}
}

// Take fills to with exactly the bytes that a node offers under a tag, waiting until it
// does.
func (x *Exchange) Take(ctx context.Context, node int, k peer.Kind, t Tag, to []byte, tally *peer.Tally) error {
	q := peer.Query{Service: peer.Offers, Kind: k, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Limit: len(to), Tally: tally}
	answer, err := x.peers.Ask(ctx, node, q, to)
	if err != nil {
		return fmt.Errorf("take the offer of %s: %w", t, err)
	}
	if len(answer) != len(to) {
		return fmt.Errorf("take the offer of %s: node %s offers %d bytes in place of %d", t, x.work.Nodes[node], len(answer), len(to))
	}
	if len(to) > 0 && &answer[0] != &to[0] {
		copy(to, answer)
	}
	return nil
}
