package exchange

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// messageLimit bounds the bytes of a message of Gather.
const messageLimit = 16 << 20

// Gather sends a message from each node to all, and returns the messages of all nodes,
// in their order. Messages are small; they are valid until the next Gather but one.
func (x *Exchange) Gather(ctx context.Context, t Tag, mine []byte, tally *peer.Tally) ([][]byte, error) {
	t.Lane = LaneMessages
	if len(mine) > messageLimit {
		return nil, fmt.Errorf("a message of %d bytes to all nodes is too long: %d is the most", len(mine), messageLimit)
	}
	r := &x.messages[x.gathers%2]
	x.gathers++
	self := x.work.Self
	kept := r.room(self, len(mine))
	copy(kept, mine)
	r.calls[self].answer = kept
	var o *offer
	if !x.work.Alone() {
		x.mu.Lock()
		o = x.blank(t.Lane, len(mine))
		x.mu.Unlock()
		if len(mine) > 0 {
			copy(o.rows[0], mine)
		}
	}
	for node := range x.work.Nodes {
		if node != self {
			r.want(node, peer.Control, t, messageLimit, tally).exact = false
		}
	}
	if err := r.run(ctx, t, o); err != nil {
		return nil, fmt.Errorf("gather what all nodes say at epoch %d, step %d: %w", t.Epoch, t.Step, err)
	}
	r.messages = r.messages[:0]
	for i := range r.calls {
		r.messages = append(r.messages, r.calls[i].answer)
	}
	return r.messages, nil
}
