package pipe

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// windowBytes bounds what is taken at once, so that no answer is larger than the limit of
// messages, nor takes longer than nodes wait.
var windowBytes = 32 << 20

// A wire is a worker's traffic with other nodes.
type wire struct {
	task  *Task
	tally *peer.Tally
	// under is the context of all fetches: it ends with parent, or when cancel is called.
	parent, under context.Context
	cancel        context.CancelCauseFunc
	fetches       []*fetch      // all of the worker's
	waited        time.Duration // for other nodes, since Waited was last called

	trialStep uint32         // 0: this is no trial
	offered   []exchange.Tag // in a trial
}

// nodes returns the number of nodes of the job.
func (w *wire) nodes() int { return max(1, len(w.task.Work.Nodes)) }

// Waited returns how long epochs have waited for other nodes since its last call. What
// arrives while something is computed was not waited for.
func (w *wire) Waited() time.Duration {
	d := w.waited
	w.waited = 0
	return d
}

// since counts the time since a start as waited for other nodes.
func (w *wire) since(start time.Time) { w.waited += time.Since(start) }

// A fetch takes what another node offers while the worker does something else: one offer at
// a time, again and again without allocating.
type fetch struct {
	w    *wire
	node int
	kind peer.Kind

	tag   exchange.Tag
	to    []byte
	under bool // started, and not waited for yet
	err   error
	done  chan struct{}
	run   func() // bound once
}

func (w *wire) newFetch(node int, k peer.Kind) *fetch {
	f := &fetch{w: w, node: node, kind: k, done: make(chan struct{}, 1)}
	f.run = f.do
	w.fetches = append(w.fetches, f)
	return f
}

// start begins to fill to, which belongs to the fetch until wait returns.
func (f *fetch) start(t exchange.Tag, to []byte) {
	f.tag, f.to, f.under = t, to, true
	go f.run()
}

func (f *fetch) do() {
	if f.err = f.take(f.w.under); f.err != nil {
		f.w.fail(fmt.Errorf("of node %s: %w", f.w.task.Work.Nodes[f.node], f.err))
	}
	f.done <- struct{}{}
}

// take takes the offer, window by window. Gradients are exempt: their offers have several
// parts and are never large.
func (f *fetch) take(ctx context.Context) error {
	x, tally := f.w.task.Exchange, f.w.tally
	if len(f.to) <= windowBytes || f.kind == peer.Gradient {
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

// wait returns when all is there. If anything has failed, it returns the first failure.
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

// within makes all fetches end with a context, or with the first fetch that fails. It
// returns that context, which is reused for all epochs under one parent.
func (w *wire) within(ctx context.Context) context.Context {
	if w.parent != ctx || w.under.Err() != nil {
		w.fail(nil)
		w.parent = ctx
		w.under, w.cancel = context.WithCancelCause(ctx)
	}
	return w.under
}

// fail ends all fetches.
func (w *wire) fail(err error) {
	if w.cancel != nil {
		w.cancel(err)
	}
}

// abandon ends all fetches and returns when none writes anything any more.
func (w *wire) abandon(err error) {
	w.fail(err)
	for _, f := range w.fetches {
		if f.under {
			<-f.done
			f.under = false
		}
	}
}

// A number is what is computed with.
type number interface{ ~float32 | ~float64 }

// numbers, room, read, write and raw are those of package plain.
func numbers[T number](b []byte) []T { return plain.Numbers[T](b) }

func room(bytes int) []byte { return plain.Room(bytes) }

func read(d tensor.Device, to []byte, m tensor.Matrix) { plain.Read(d, to, m) }

func write(d tensor.Device, m tensor.Matrix, from []byte) { plain.Write(d, m, from) }

func raw[T number](s []T) []byte { return plain.Bytes(s) }

// bytes returns the size of a matrix in messages.
func bytes(m tensor.Matrix) int { return m.Rows * m.Cols * m.Type.Bytes() }
