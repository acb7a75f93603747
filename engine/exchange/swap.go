package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Two nodes that both have something short for each other under the same tag need one question for
// it: who asks brings its own with the question. Small messages cost by their number, so this
// halves what they cost. It takes no longer: the answer waits for the other node's offer, as any
// answer does, and each node has what it needs once both have offered.

const (
	// swapBytes bounds what comes with a question, since it waits in memory for who is asked.
	swapBytes = 128 << 10
	// swapPatience is how long a node waits to be asked until it asks. So it ends even if the other's
	// question does not come, and can name the node that it waits for. Where the other one is only
	// slow, its part comes twice, and is counted once.
	swapPatience = 2 * time.Second
)

// asks reports whether a node asks another one, where one question is enough for both. Each node
// asks about half of the others.
func asks(node, other, nodes int) bool {
	ahead := (other - node + nodes) % nodes
	return 2*ahead < nodes || 2*ahead == nodes && node < other
}

// swaps reports whether one question is enough for two nodes that give each other so many bytes.
func swaps(node, other, nodes, gives, takes int) bool {
	brings := gives
	if !asks(node, other, nodes) {
		brings = takes
	}
	return gives > 0 && takes > 0 && brings <= swapBytes
}

// trade adds to the next run that this node takes the bytes from first to end of each of another one's
// rows, and gives it something: so many bytes in all, either way. It returns where to put what this
// node gives, if that goes with its question.
func (r *round) trade(node int, t Tag, first, end, gives, takes int, tally *peer.Tally) []byte {
	c := r.want(node, peer.Gradient, t, takes, tally)
	putColumns(c.columns[:], first, end)
	c.query.Body = c.columns[:]
	self, nodes := r.x.work.Self, len(r.calls)
	if !swaps(self, node, nodes, gives, takes) {
		return nil
	}
	if !asks(self, node, nodes) {
		c.comes = true
		return nil
	}
	c.body = grow(c.body, columnsSize+gives)
	c.query.Body = bytesOf(c.body)[:columnsSize+gives]
	copy(c.query.Body, c.columns[:])
	return c.query.Body[columnsSize:]
}

// expect lets brought take what comes with questions from now on. The caller holds the exchange's
// lock, and makes this node's offer visible before it gives the lock back.
func (r *round) expect(t Tag) { r.expects, r.expected = true, t }

// brought takes what came with a node's question. If it came before, as with a question that is
// asked again, or this node has asked itself, this does nothing.
func (r *round) brought(node int, t Tag, b []byte) error {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if !r.expects || t != r.expected || !r.calls[node].comes {
		return nil
	}
	c := &r.calls[node]
	if len(b) != c.query.Limit {
		return fmt.Errorf("%w: %d bytes come with a question in place of %d", peer.ErrRefused, len(b), c.query.Limit)
	}
	c.answer = r.room(node, len(b))
	copy(c.answer, b)
	c.comes = false
	r.done <- struct{}{}
	return nil
}

// ask has this node ask those who have not asked it yet. It is not counted: their questions will be.
func (r *round) ask() {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	for i := range r.calls {
		if c := &r.calls[i]; c.comes {
			c.comes = false
			c.query.Tally = nil
			go c.run()
		}
	}
}

// giveUp ends the wait for questions. It returns how many had not come.
func (r *round) giveUp() (missing int) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.expects = false
	for i := range r.calls {
		if c := &r.calls[i]; c.comes {
			c.comes = false
			missing++
		}
	}
	return missing
}

// wait returns when so many calls have ended, or have been given up.
func (r *round) wait(under int) {
	if r.late == nil {
		r.late = time.NewTimer(swapPatience)
	} else {
		r.late.Reset(swapPatience)
	}
	defer r.late.Stop()
	ended := r.ctx.Done()
	for under > 0 {
		select {
		case <-r.done:
			under--
		case <-r.late.C:
			r.ask()
		case <-ended:
			if missing := r.giveUp(); missing > 0 {
				under -= missing
				r.fail(context.Cause(r.ctx))
			}
			ended = nil
		}
	}
	r.giveUp()
}
