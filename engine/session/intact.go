package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Verify returns nil if all that a node has read of its shards so far is what they should
// hold. With wait it finds out, and an ErrUnverified says that it could not; else it returns
// ErrUnverified if that is not known yet. It may be called from any goroutine.
type Verify func(ctx context.Context, wait bool) error

// ErrUnverified marks errors of Verify that are no damage: it does not know.
var ErrUnverified = errors.New("it is not known yet whether the shards are whole")

// intact is what the nodes of a run tell each other of the shards that they read.
type intact struct {
	verify  Verify // nil: nothing is verified
	doubted atomic.Pointer[string]
}

// askPatience bounds the wait for an answer that takes no time where it is given.
const askPatience = 2 * time.Second

// Watch sets how this node verifies what it reads, before Bring. nil: it does not.
func (s *Session) Watch(v Verify) { s.intact.verify = v }

// Verify returns an error unless this node's shards are what they should be.
func (s *Session) Verify(ctx context.Context, wait bool) error {
	if s.intact.verify == nil {
		return nil
	}
	return s.intact.verify(ctx, wait)
}

// Verifies reports whether this node verifies what it reads.
func (s *Session) Verifies() bool { return s.intact.verify != nil }

// Doubted returns the name of a node that has read a damaged shard in this run; "" if no
// node has said so.
func (s *Session) Doubted() string {
	if by := s.intact.doubted.Load(); by != nil {
		return *by
	}
	return ""
}

// Doubt notes that this node has read a damaged shard, and tells all others: what they have
// computed with its numbers must not be kept. It returns when they know, or do not answer.
func (s *Session) Doubt(ctx context.Context) {
	name := s.Name(s.Work.Self)
	s.intact.doubted.CompareAndSwap(nil, &name)
	s.askOthers(ctx, askPatience, AskDoubt, func(int, []byte, error) {})
}

// Intact asks all others whether what they have read of their shards is what these should
// hold. It returns the name of a node of which that is not known, or "". With wait the nodes
// find out, and only one that has found damage is named.
func (s *Session) Intact(ctx context.Context, wait bool) (not string) {
	if by := s.Doubted(); by != "" {
		return by
	}
	part, patience := AskIntact, askPatience
	if wait {
		part, patience = AskVerified, 0
	}
	s.askOthers(ctx, patience, part, func(node int, answer []byte, err error) {
		if err == nil && len(answer) == 1 && answer[0] == 1 || err != nil && wait {
			return
		}
		not = s.Name(node)
	})
	return not
}

// askOthers asks each other node, all at once, and calls hear with one answer at a time. A
// patience of 0 has no end.
func (s *Session) askOthers(ctx context.Context, patience time.Duration, part uint32, hear func(node int, answer []byte, err error)) {
	if s.Alone() {
		return
	}
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for node := range s.Work.Nodes {
		if node == s.Work.Self {
			continue
		}
		asking.Go(func() {
			q := peer.Query{Service: peer.Checkpoint, Kind: peer.Control, Part: part, Limit: 1}
			answer, err := s.Peers.Ask(ctx, node, q, nil)
			mu.Lock()
			defer mu.Unlock()
			hear(node, answer, err)
		})
	}
	asking.Wait()
}

// answerIntact answers what Doubt and Intact ask.
func (s *Session) answerIntact(ctx context.Context, from int, part uint32, reply func(parts ...[]byte) error) error {
	if part == AskDoubt {
		name := s.Name(from)
		s.intact.doubted.CompareAndSwap(nil, &name)
		return reply()
	}
	err := s.Verify(ctx, part == AskVerified)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, context.Cause(ctx))
	}
	if part == AskVerified && errors.Is(err, ErrUnverified) {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	if err != nil || s.Doubted() == s.Name(s.Work.Self) {
		return reply([]byte{0})
	}
	return reply([]byte{1})
}
