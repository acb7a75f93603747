package school

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// class is one node's part of a run that several nodes share. It is nil if one node runs
// the job alone.
type class struct {
	peers peer.Peers
	work  peer.Work

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	begun   bool
	history []trained.Epoch // that this node had before the meeting
	done    int             // the last epoch completed here
	left    int             // how many other nodes need nothing more from this one
}

// askLeave is the part of a question by which a node announces that.
const askLeave = 1

func newClass(o train.Options) *class {
	c := &class{peers: o.Peers, work: o.Work, changed: make(chan struct{})}
	o.Peers.Answer(peer.Checkpoint, func(ctx context.Context, _ int, q peer.Query, reply func(...[]byte) error) error {
		if q.Part == askLeave {
			c.change(func() { c.left++ })
			return reply()
		}
		if err := c.wait(ctx, func() bool { return c.begun }); err != nil {
			return err
		}
		b, err := json.Marshal(c.history)
		if err != nil {
			return err
		}
		return reply(b)
	})
	o.Peers.Answer(peer.Offers, func(ctx context.Context, _ int, q peer.Query, reply func(...[]byte) error) error {
		if err := c.wait(ctx, func() bool { return c.done >= int(q.Epoch) }); err != nil {
			return err
		}
		return reply([]byte{1})
	})
	o.Peers.Open()
	return c
}

func (c *class) name() string {
	if c == nil {
		return ""
	}
	return c.work.Nodes[c.work.Self]
}

// meet agrees on where to begin: at the furthest place that any of the nodes knows.
func (c *class) meet(ctx context.Context, history []trained.Epoch) ([]trained.Epoch, error) {
	c.change(func() { c.begun, c.history = true, history })
	best := history
	err := c.askAll(ctx, peer.Query{Service: peer.Checkpoint, Kind: peer.Model, Limit: 1 << 24}, func(b []byte) error {
		var other []trained.Epoch
		if err := json.Unmarshal(b, &other); err != nil {
			return err
		}
		if len(other) > len(best) {
			best = other
		}
		return nil
	})
	c.change(func() { c.done = lastOf(best) })
	return best, err
}

// together waits until all nodes have completed an epoch.
func (c *class) together(ctx context.Context, epoch int) error {
	if c == nil {
		return nil
	}
	c.change(func() { c.done = epoch })
	return c.askAll(ctx, peer.Query{Service: peer.Offers, Kind: peer.Gradient, Epoch: uint32(epoch), Limit: 1}, func([]byte) error { return nil })
}

// leave waits until the other nodes have what they need from this one, as the engine
// does.
func (c *class) leave(ctx context.Context) error {
	if c == nil {
		return nil
	}
	err := c.askAll(ctx, peer.Query{Service: peer.Checkpoint, Kind: peer.Control, Part: askLeave}, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	return c.wait(ctx, func() bool { return c.left == len(c.work.Nodes)-1 })
}

// askAll asks the other nodes one after the other.
func (c *class) askAll(ctx context.Context, q peer.Query, hear func([]byte) error) error {
	for node := range c.work.Nodes {
		if node == c.work.Self {
			continue
		}
		b, err := c.peers.Ask(ctx, node, q, nil)
		if err == nil {
			err = hear(b)
		}
		if err != nil {
			return fmt.Errorf("epoch %d: %w", q.Epoch, err)
		}
	}
	return nil
}

func (c *class) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *class) wait(ctx context.Context, holds func() bool) error {
	for {
		c.mu.Lock()
		ok, changed := holds(), c.changed
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
