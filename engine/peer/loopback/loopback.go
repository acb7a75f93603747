package loopback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Net is the way between nodes.
type Net struct {
	nodes []*Node

	// Trouble, if not nil, is asked before each question is carried, from any
	// goroutine: it may wait, and its error is what the asker gets.
	Trouble func(ctx context.Context, from, to int, q peer.Query) error
	// Delay is how long an answer takes, beside what its handler does. Questions take no time,
	// whatever comes with them.
	Delay time.Duration
	// Carry, if not nil, is told of each answer of so many bytes before a node gets it, from
	// any goroutine: it may wait.
	Carry func(to, bytes int)
}

// New makes a network of so many nodes.
func New(nodes int) *Net {
	n := &Net{}
	for i := range nodes {
		n.nodes = append(n.nodes, &Node{net: n, self: i, open: make(chan struct{})})
	}
	return n
}

// Node is what one of them sees.
func (n *Net) Node(i int) *Node { return n.nodes[i] }

// A Node is one node's Peers.
type Node struct {
	net      *Net
	self     int
	handlers [16]peer.Handler
	open     chan struct{}
	once     sync.Once
}

// Answer implements peer.Peers.
func (n *Node) Answer(s peer.Service, h peer.Handler) { n.handlers[s] = h }

// Open implements peer.Peers.
func (n *Node) Open() { n.once.Do(func() { close(n.open) }) }

// Ask implements peer.Peers.
func (n *Node) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	answer, err := n.ask(ctx, node, q, buf)
	if err != nil {
		return nil, fmt.Errorf("ask node n%d: %w", node, err)
	}
	return answer, nil
}

func (n *Node) ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	if node == n.self {
		return nil, fmt.Errorf("node %d asks itself", node)
	}
	if t := n.net.Trouble; t != nil {
		if err := t(ctx, n.self, node, q); err != nil {
			return nil, err
		}
	}
	to := n.net.nodes[node]
	select {
	case <-to.open:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	h := to.handlers[q.Service]
	if h == nil {
		return nil, fmt.Errorf("%w: nothing answers service %d", peer.ErrRefused, q.Service)
	}
	seen, tally := q, q.Tally
	seen.Body, seen.Tally = slices.Clone(q.Body), nil // the asker's own are not the other's to keep
	answer, replied := buf[:0], false
	reply := func(parts ...[]byte) error {
		replied = true
		size := 0
		for _, p := range parts {
			size += len(p)
		}
		if cap(answer) < size {
			answer = make([]byte, 0, size) // as large as it is, as from a stream
		}
		for _, p := range parts {
			answer = append(answer, p...)
		}
		if len(answer) > q.Limit {
			return fmt.Errorf("an answer of %d bytes is over the limit of %d", len(answer), q.Limit)
		}
		return nil
	}
	err := h(ctx, n.self, seen, reply)
	for errors.Is(err, peer.ErrEarly) && ctx.Err() == nil {
		err = h(ctx, n.self, seen, reply)
	}
	if err != nil {
		return nil, err
	}
	if !replied {
		return nil, fmt.Errorf("service %d gave no answer", q.Service)
	}
	if n.net.Carry != nil {
		n.net.Carry(n.self, len(answer))
	}
	if n.net.Delay > 0 {
		select {
		case <-time.After(n.net.Delay):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	tally.Count(q.Kind, peer.QueryFraming+len(q.Body)+peer.AnswerFraming+len(answer))
	return answer, nil
}
