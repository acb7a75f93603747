package p3

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A flight is the first layer's sums of a step under way: the ones offered to others,
// and the ones received. There are as many flights as steps may be under way at once.
type flight struct {
	partials [][]byte // of each node's groups, computed here
	theirs   [][]byte // of this node's groups, from each node
	takes    takes
	tags     []exchange.Tag // of the offers
}

func newFlight(x *exchange.Exchange, nodes int) *flight {
	l := &flight{partials: make([][]byte, nodes), theirs: make([][]byte, nodes)}
	l.takes.init(x, nodes)
	return l
}

var errLanded = errors.New("the step is no longer computed")

// launch puts a batch under way.
func (f *Front) launch(b *Batch) error {
	n := len(f.hangar)
	if n == 0 {
		return fmt.Errorf("p3: %d steps are under way, and step %d would be one too many", len(f.air), b.step+1)
	}
	b.flight, f.hangar = f.hangar[n-1], f.hangar[:n-1]
	f.air = append(f.air, b)
	return nil
}

// land ends that.
func (f *Front) land(b *Batch) {
	for i, other := range f.air {
		if other == b {
			f.air = append(f.air[:i], f.air[i+1:]...)
			break
		}
	}
	f.hangar, b.flight = append(f.hangar, b.flight), nil
}

// Sent reports whether a batch is under way: Send was called, but not yet Done or Stop.
func (b *Batch) Sent() bool { return b.flight != nil }

// Version returns the version given to Send.
func (b *Batch) Version() int { return b.version }

// Send begins to compute the first layer's sums with weights. The products of this
// node's columns, for the groups of all nodes, are computed now, and travel until Sums
// needs them. So the weights of a step are fixed here, whatever happens to them later;
// version, which is the caller's, is remembered. key is that of the step's dropout.
func (f *Front) Send(ctx context.Context, b *Batch, epoch uint32, key keyed.Key, weights tensor.Matrix, version int) error {
	if b.flight != nil {
		return fmt.Errorf("p3: step %d is under way already", b.step+1)
	}
	if err := f.launch(b); err != nil {
		return err
	}
	b.version = version
	if b.key != key {
		b.pass.Key = key
		if b.pass.InputDropout(nil).P > 0 { // a batch that serves many steps
			f.lay(b, Hand{f.device, f.scratch, b.rows}, key)
		}
	}
	f.begin(b)
	own, l := b.nodes[f.self].rows, b.flight
	l.takes.begin(ctx)
	for node := range l.theirs {
		bytes := len(f.spans[node]) * own * f.cols * f.device.Type().Bytes()
		l.theirs[node] = room(l.theirs[node], bytes)
		if node != f.self && bytes > 0 {
			l.takes.take(node, peer.Activation, b.partialTag(epoch, f.self), l.theirs[node], b.tally)
		}
	}
	for i := range f.nodes {
		node := (f.self + 1 + i) % f.nodes // in a different order on each node, own ones last
		f.partial(b, node, epoch, weights)
	}
	return nil
}

// partialTag returns the tag of partial sums for a node. Steps take turns in two lanes:
// each keeps the offers of its two latest steps, and up to MostInflight are under way.
func (b *Batch) partialTag(epoch uint32, node int) exchange.Tag {
	tag := b.tag(epoch, exchange.LanePartial)
	if b.step%2 == 1 {
		tag.Lane = exchange.LanePartOdd
	}
	tag.Index = uint32(node)
	return tag
}

// Done ends a step, once its gradients have been added up over all nodes: by then all
// have received the offers, and nobody needs them any more.
func (f *Front) Done(ctx context.Context, b *Batch) error {
	for _, tags := range [...]*[]exchange.Tag{&f.tags, &b.flight.tags} {
		for _, t := range *tags {
			if err := f.exchange.Withdraw(ctx, t); err != nil {
				return err
			}
		}
		*tags = (*tags)[:0]
	}
	f.land(b)
	return nil
}

// Stop cancels what is under way and waits for it. After it the front makes no more
// steps of the run, or starts again those that were under way.
func (f *Front) Stop() {
	for len(f.air) > 0 {
		b := f.air[len(f.air)-1]
		b.flight.takes.stop(errLanded)
		b.flight.tags = b.flight.tags[:0]
		f.land(b)
	}
}
