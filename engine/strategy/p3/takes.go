package p3

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// takes receives data from several nodes at once. Its memory is reused.
type takes struct {
	exchange *exchange.Exchange
	all      []take // one per node
	under    int
	done     chan struct{}

	// The context of all rounds under one parent is made once.
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
}

type take struct {
	of    *takes
	node  int
	kind  peer.Kind
	tag   exchange.Tag
	to    []byte
	tally *peer.Tally
	err   error
	run   func() // do, bound once
}

func (t *takes) init(x *exchange.Exchange, nodes int) {
	t.exchange, t.all, t.done = x, make([]take, nodes), make(chan struct{}, nodes)
	for i := range t.all {
		c := &t.all[i]
		c.of, c.node = t, i
		c.run = c.do
	}
}

// begin prepares a round.
func (t *takes) begin(ctx context.Context) {
	if t.parent == ctx && t.ctx.Err() == nil {
		return
	}
	if t.cancel != nil {
		t.cancel(nil)
	}
	t.parent = ctx
	t.ctx, t.cancel = context.WithCancelCause(ctx)
}

// take begins to receive an offer of a node, one at a time per node.
func (t *takes) take(node int, k peer.Kind, tag exchange.Tag, to []byte, tally *peer.Tally) {
	c := &t.all[node]
	c.kind, c.tag, c.to, c.tally = k, tag, to, tally
	t.under++
	go c.run()
}

func (c *take) do() {
	c.err = c.of.exchange.Take(c.of.ctx, c.node, c.kind, c.tag, c.to, c.tally)
	if c.err != nil {
		c.of.cancel(c.err) // the first is the cause of the others' end
	}
	c.of.done <- struct{}{}
}

// wait waits for all that was begun.
func (t *takes) wait() error {
	t.land()
	return context.Cause(t.ctx)
}

func (t *takes) land() {
	for ; t.under > 0; t.under-- {
		<-t.done
	}
}

// stop cancels what was begun, and waits for it.
func (t *takes) stop(cause error) {
	if t.cancel != nil {
		t.cancel(cause)
	}
	t.land()
}
