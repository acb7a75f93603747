package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// What the service peer.Checkpoint is asked for, by Part.
const (
	AskFile     uint32 = iota // a piece of the checkpoint that this node goes on from
	AskLeave                  // nothing: the asker has all that it needs of this node
	AskDoubt                  // nothing: the asker has read a damaged shard
	AskIntact                 // whether this node knows that its shards are whole
	AskVerified               // the same, once it has read them
)

// LeaveAfter is how long a node that is done waits for the others to have what they need
// of it. They have asked for it already: only what is lost on the way takes longer.
const LeaveAfter = 10 * time.Second

// seats know who still needs this node.
type seats struct {
	mu   sync.Mutex
	left []bool
	done chan struct{} // closed when all have left
}

func newSeats(nodes int) *seats {
	return &seats{left: make([]bool, nodes), done: make(chan struct{})}
}

// leave notes that a node needs nothing any more.
func (s *seats) leave(node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[node] {
		return
	}
	s.left[node] = true
	left := 0
	for _, l := range s.left {
		if l {
			left++
		}
	}
	if left == len(s.left)-1 {
		close(s.done)
	}
}

// answer returns the service's handler. The file whose pieces it serves stays as it is until
// all have what they lack of it: none is written before a step in which all take part.
func (s *Session) answer(piece func(peer.Query) ([]byte, error)) peer.Handler {
	return func(ctx context.Context, from int, q peer.Query, reply func(parts ...[]byte) error) error {
		switch q.Part {
		case AskLeave:
			s.seats.leave(from)
			return reply()
		case AskDoubt, AskIntact, AskVerified:
			return s.answerIntact(ctx, from, q.Part, reply)
		case AskFile:
			b, err := piece(q)
			if err != nil {
				return err
			}
			return reply(b)
		}
		return fmt.Errorf("%w: a checkpoint's service knows no part %d", peer.ErrRefused, q.Part)
	}
}

// Leave tells all others that this node has what it needs of them, and waits until they
// have what they need of it. It is a courtesy: whoever does not answer has failed or is
// gone, and what this node has made is whole.
func (s *Session) Leave(ctx context.Context, log *slog.Logger) {
	if s.Alone() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, LeaveAfter)
	defer cancel()
	var asking sync.WaitGroup
	for node := range s.Work.Nodes {
		if node == s.Work.Self {
			continue
		}
		asking.Go(func() {
			q := peer.Query{Service: peer.Checkpoint, Kind: peer.Control, Part: AskLeave}
			if _, err := s.Peers.Ask(ctx, node, q, nil); err != nil {
				log.Debug("a node does not know that this one is done", "node", s.Name(node), "err", err)
			}
		})
	}
	select {
	case <-s.seats.done:
	case <-ctx.Done():
	}
	asking.Wait()
}
