package exchange

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A round asks other nodes, each one question, all at once. Its memory is used again.
type round struct {
	x     *Exchange
	calls []call // to each node; that to this one is not made
	done  chan struct{}

	messages [][]byte // what Gather returns

	// What calls wait by is made once for all rounds under one context.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc

	mu  sync.Mutex
	err error // of the call that failed first
}

// A call is one question of a round.
type call struct {
	r       *round
	node    int
	query   strategy.Query
	columns [columnsSize]byte
	exact   bool // an answer shorter than the limit is wrong
	wanted  bool
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

// room is memory of the call to a node, for so many bytes.
func (r *round) room(node, bytes int) []byte {
	c := &r.calls[node]
	c.memory = grow(c.memory, bytes)
	return bytesOf(c.memory)[:bytes]
}

// want has a node be asked in the next run.
func (r *round) want(node int, k strategy.Kind, t Tag, limit int, tally *strategy.Tally) *call {
	c := &r.calls[node]
	c.query = strategy.Query{Service: strategy.Offers, Kind: k, Epoch: t.Epoch, Step: t.Step, Part: t.part(), Limit: limit, Tally: tally}
	c.wanted, c.exact = true, true
	return c
}

// run asks all that are wanted, and waits for them. The first that fails ends the
// others.
func (r *round) run(ctx context.Context) error {
	if r.parent != ctx || r.ctx.Err() != nil {
		if r.cancel != nil {
			r.cancel(nil)
		}
		r.parent = ctx
		r.ctx, r.cancel = context.WithCancelCause(ctx)
	}
	r.err = nil
	under := 0
	for i := range r.calls {
		if c := &r.calls[i]; c.wanted {
			c.wanted = false
			under++
			go c.run()
		}
	}
	for range under {
		<-r.done
	}
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
