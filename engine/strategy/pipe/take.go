package pipe

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// windowBytes is how much is taken at once, so that no answer is larger than what nodes
// make for each other, nor takes longer than they wait.
var windowBytes = 32 << 20

// A fetch takes what another node offers while the worker does something else: one offer
// at a time, and again and again without allocating.
type fetch struct {
	w    *Worker
	node int
	kind strategy.Kind

	tag   exchange.Tag
	to    []byte
	under bool // it is started, and nobody has waited for it
	err   error
	done  chan struct{}
	run   func() // bound once
}

func (w *Worker) newFetch(node int, k strategy.Kind) *fetch {
	f := &fetch{w: w, node: node, kind: k, done: make(chan struct{}, 1)}
	f.run = f.do
	w.fetches = append(w.fetches, f)
	return f
}

// start begins to fill to, which is the fetch's until somebody has waited for it.
func (f *fetch) start(t exchange.Tag, to []byte) {
	f.tag, f.to, f.under = t, to, true
	go f.run()
}

func (f *fetch) do() {
	if f.err = f.take(f.w.under); f.err != nil {
		f.w.fail(fmt.Errorf("of node %s: %w", f.w.Work.Nodes[f.node], f.err))
	}
	f.done <- struct{}{}
}

// take takes the offer: window by window, but for what is added up, which is of several
// parts, and never large.
func (f *fetch) take(ctx context.Context) error {
	x, tally := f.w.Exchange, f.w.tally
	if len(f.to) <= windowBytes || f.kind == strategy.Gradient {
		return x.Take(ctx, f.node, f.kind, f.tag, f.to, tally)
	}
	for first := 0; first < len(f.to); first += windowBytes {
		end := min(first+windowBytes, len(f.to))
		if err := x.TakePart(ctx, f.node, f.kind, f.tag, first, f.to[first:end:end], tally); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until all is there: where something failed, for whatever failed first.
func (f *fetch) wait() error {
	if !f.under {
		return nil
	}
	defer f.w.since(time.Now())
	<-f.done
	f.under = false
	if f.err != nil {
		return context.Cause(f.w.under)
	}
	return nil
}

// within has all fetches end with a context, or with the first of them that fails. What
// they wait by is made once for all epochs under one context.
func (w *Worker) within(ctx context.Context) context.Context {
	if w.parent != ctx || w.under.Err() != nil {
		w.fail(nil)
		w.parent = ctx
		w.under, w.cancel = context.WithCancelCause(ctx)
	}
	return w.under
}

// fail ends all fetches.
func (w *Worker) fail(err error) {
	if w.cancel != nil {
		w.cancel(err)
	}
}

// abandon ends them and waits until none fills anything any more.
func (w *Worker) abandon(err error) {
	w.fail(err)
	for _, f := range w.fetches {
		if f.under {
			<-f.done
			f.under = false
		}
	}
}
