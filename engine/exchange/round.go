package exchange

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A round asks other nodes one question each, all at once, or waits for theirs. Its memory is reused.
type round struct {
	x     *Exchange
	calls []call // to each node, but not to this one
	done  chan struct{}

	messages [][]byte // the result of Gather

	// The context of all rounds under one parent is made once.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc

	// The exchange's lock guards these, and the calls whose answers come with questions.
	expects  bool
	expected Tag

	late *time.Timer // for whom the others have not asked yet

	mu  sync.Mutex
	err error // of the first call that failed
}

// A call is one question of a round, or the wait for the other node's.
type call struct {
	r       *round
	node    int
	query   peer.Query
	columns [columnsSize]byte
	body    []uint64 // the columns, and what this node brings
	exact   bool     // an answer shorter than the limit is an error
	wanted  bool
	comes   bool // the other node asks, and brings what this one wants
	memory  []uint64
	answer  []byte
	run     func() // do, bound once
}

func (r *round) init(x *Exchange) {
	n := len(x.work.Nodes)
	r.x, r.calls, r.done = x, make([]call, n), make(chan struct{}, n)
	for i := range r.calls {
		c := &r.calls[i]
		c.r, c.node = r, i
		c.run = c.do
	}
}

// room returns memory of the call to a node, for so many bytes.
func (r *round) room(node, bytes int) []byte {
	c := &r.calls[node]
	c.memory = grow(c.memory, bytes)
	return bytesOf(c.memory)[:bytes]
}

// want adds a question to a node to the next run.
func (r *round) want(node int, k peer.Kind, t Tag, limit int, tally *peer.Tally) *call {
	c := &r.calls[node]
	c.query = peer.Query{Service: peer.Offers, Kind: k, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Limit: limit, Tally: tally}
	c.wanted, c.exact, c.comes = true, true, false
	return c
}

// run offers something, if there is anything to offer, asks all questions of the round, and waits
// for the answers, and for the questions of those who bring theirs. The first failure cancels the
// others.
func (r *round) run(ctx context.Context, t Tag, o *offer) error {
	if r.parent != ctx || r.ctx.Err() != nil {
		if r.cancel != nil {
			r.cancel(nil)
		}
		r.parent = ctx
		r.ctx, r.cancel = context.WithCancelCause(ctx)
	}
	r.err = nil
	under := 0
	r.x.mu.Lock()
	r.expect(t)
	if o != nil {
		r.x.publish(t, o)
	}
	for i := range r.calls {
		if c := &r.calls[i]; c.wanted {
			c.wanted = false
			under++
			if !c.comes {
				go c.run()
			}
		}
	}
	r.x.mu.Unlock()
	r.wait(under)
	return r.err
}

func (c *call) do() {
	if err := c.ask(); err != nil {
		c.r.fail(err)
	}
	c.r.done <- struct{}{}
}

func (c *call) ask() error {
	buf := bytesOf(c.memory[:cap(c.memory)])
	if c.exact {
		buf = c.r.room(c.node, c.query.Limit)
	}
	answer, err := c.r.x.peers.Ask(c.r.ctx, c.node, c.query, buf)
	if err != nil {
		return err
	}
	if c.exact && len(answer) != c.query.Limit {
		return fmt.Errorf("node %s answers with %d bytes in place of %d", c.r.x.work.Nodes[c.node], len(answer), c.query.Limit)
	}
	c.answer = c.r.room(c.node, len(answer))
	if len(answer) > 0 && &answer[0] != &c.answer[0] {
		copy(c.answer, answer)
	}
	return nil
}

func (r *round) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		r.cancel(err)
	}
}
