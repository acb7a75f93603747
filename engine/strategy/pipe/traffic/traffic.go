// Package traffic is what a pipeline's worker offers other nodes, and takes of theirs while
// something is computed.
package traffic

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// WindowBytes bounds what is taken at once, so that no answer is larger than the limit of
// messages, nor takes longer than nodes wait.
var WindowBytes = 32 << 20

// Traffic is that of a worker with other nodes. One goroutine uses it.
type Traffic struct {
	Exchange *exchange.Exchange // nil on a single node
	Work     peer.Work
	Tally    *peer.Tally
	// Trial, if not 0, is the first of the steps of a trial.
	Trial uint32

	// under is the context of all fetches: it ends with parent, or when cancel is called.
	parent, under context.Context
	cancel        context.CancelCauseFunc
	fetches       []*Fetch      // all of the worker's
	waited        time.Duration // for other nodes, since Waited was last called

	offered []exchange.Tag // in a trial
}

// Nodes returns the number of nodes of the job.
func (w *Traffic) Nodes() int { return max(1, len(w.Work.Nodes)) }

// Waited returns how long epochs have waited for other nodes since its last call. What
// arrives while something is computed was not waited for.
func (w *Traffic) Waited() time.Duration {
	d := w.waited
	w.waited = 0
	return d
}

// Since counts the time since a start as waited for other nodes.
func (w *Traffic) Since(start time.Time) { w.waited += time.Since(start) }

// A Fetch takes what another node offers while the worker does something else: one offer at
// a time, again and again without allocating.
type Fetch struct {
	w    *Traffic
	node int
	kind peer.Kind

	tag   exchange.Tag
	to    []byte
	under bool // started, and not waited for yet
	err   error
	done  chan struct{}
	run   func() // bound once
}

func (w *Traffic) NewFetch(node int, k peer.Kind) *Fetch {
	f := &Fetch{w: w, node: node, kind: k, done: make(chan struct{}, 1)}
	f.run = f.do
	w.fetches = append(w.fetches, f)
	return f
}

// Start begins to fill to, which belongs to the fetch until Wait returns.
func (f *Fetch) Start(t exchange.Tag, to []byte) {
	f.tag, f.to, f.under = t, to, true
	go f.run()
}

func (f *Fetch) do() {
	if f.err = f.take(f.w.under); f.err != nil {
		f.w.Fail(fmt.Errorf("of node %s: %w", f.w.Work.Nodes[f.node], f.err))
	}
	f.done <- struct{}{}
}

// take takes the offer, window by window. Gradients are exempt: their offers have several
// parts and are never large.
func (f *Fetch) take(ctx context.Context) error {
	x, tally := f.w.Exchange, f.w.Tally
	if len(f.to) <= WindowBytes || f.kind == peer.Gradient {
		return x.Take(ctx, f.node, f.kind, f.tag, f.to, tally)
	}
	for first := 0; first < len(f.to); first += WindowBytes {
		end := min(first+WindowBytes, len(f.to))
		if err := x.TakePart(ctx, f.node, f.kind, f.tag, first, f.to[first:end:end], tally); err != nil {
			return err
		}
	}
	return nil
}

// Wait returns when all is there. If anything has failed, it returns the first failure.
func (f *Fetch) Wait() error {
	if !f.under {
		return nil
	}
	defer f.w.Since(time.Now())
	<-f.done
	f.under = false
	if f.err != nil {
		return context.Cause(f.w.under)
	}
	return nil
}

// Within makes all fetches end with a context, or with the first fetch that fails. It
// returns that context, which is reused for all epochs under one parent.
func (w *Traffic) Within(ctx context.Context) context.Context {
	if w.parent != ctx || w.under.Err() != nil {
		w.Fail(nil)
		w.parent = ctx
		w.under, w.cancel = context.WithCancelCause(ctx)
	}
	return w.under
}

// Fail ends all fetches.
func (w *Traffic) Fail(err error) {
	if w.cancel != nil {
		w.cancel(err)
	}
}

// Abandon ends all fetches and returns when none writes anything any more.
func (w *Traffic) Abandon(err error) {
	w.Fail(err)
	for _, f := range w.fetches {
		if f.under {
			<-f.done
			f.under = false
		}
	}
}

// Slowest returns the longest of all nodes' times.
func (w *Traffic) Slowest(ctx context.Context, epoch int, mine float64) (most float64, err error) {
	tag := w.Stamp(epoch)
	tag.Step++
	messages, err := w.Exchange.Gather(ctx, tag, binary.LittleEndian.AppendUint64(nil, math.Float64bits(mine)), nil)
	if err != nil {
		return 0, fmt.Errorf("compare the times of a trial: %w", err)
	}
	for node, m := range messages {
		if len(m) != 8 {
			return 0, fmt.Errorf("node %s sent the time of a trial in %d bytes instead of 8: run the same version of hopmesh on all nodes of the job", w.Work.Nodes[node], len(m))
		}
		seconds := math.Float64frombits(binary.LittleEndian.Uint64(m))
		if !(seconds >= 0) || seconds > math.MaxUint32 {
			return 0, fmt.Errorf("node %s reports %g s for an epoch of a trial", w.Work.Nodes[node], seconds)
		}
		most = max(most, seconds)
	}
	return most, nil
}

// Stamp returns the tag of what belongs to an epoch, from 0, or to an epoch of a trial.
func (w *Traffic) Stamp(epoch int) exchange.Tag {
	if w.Trial > 0 {
		return exchange.Tag{Step: w.Trial + 2*uint32(epoch)}
	}
	return exchange.Tag{Epoch: uint32(epoch + 1)}
}

// Offer lets other nodes take parts. A trial withdraws its offers when it ends.
func (w *Traffic) Offer(t exchange.Tag, parts ...[]byte) {
	if w.Trial > 0 {
		w.offered = append(w.offered, t)
	}
	w.Exchange.Offer(t, parts...)
}

// Withdraw ends the offers of a trial, all of which have been taken, so that nothing
// keeps their memory.
func (w *Traffic) Withdraw(ctx context.Context) error {
	for _, t := range w.offered {
		if err := w.Exchange.Withdraw(ctx, t); err != nil {
			return fmt.Errorf("end a trial: %w", err)
		}
	}
	return nil
}

// Reclaim withdraws an offer when nobody reads it any more. Whoever takes it has it when it asks
// for another one.
func (w *Traffic) Reclaim(offer, asked exchange.Tag) error {
	defer w.Since(time.Now())
	if err := w.Exchange.Heard(w.under, asked); err != nil {
		return err
	}
	return w.Exchange.Withdraw(w.under, offer)
}
