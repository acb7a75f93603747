package peers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// Request is another node's question, as the mesh delivers it.
type Request interface {
	ReadBody(dst []byte) error
	TakeBody(into []byte, n int) ([]byte, error)
	Reply(count uint64, parts ...[]byte) error
	// ReplyCopied is Reply of memory that this goroutine may fail to read.
	ReplyCopied(count uint64, parts ...[]byte) error
	Abort(cause error)
}

var _ Request = (*mesh.Request)(nil)

// paper is the memory that a question is read into.
type paper struct {
	head [headBytes]byte
	body []byte
}

var papers = sync.Pool{New: func() any { return new(paper) }}

// Serve answers a question from an authenticated peer that came with this header. It
// reads the body before it waits for anything, since an unread body would block
// everything else from this peer.
func (r *Registry) Serve(ctx context.Context, asker string, h mesh.Header, req Request) error {
	if h.Length < headBytes || h.Length > headBytes+mesh.MaxBody {
		return fmt.Errorf("%w: a question of a job in %d bytes", mesh.ErrProtocol, h.Length)
	}
	kind, in := fromWire(h.Kind)
	if !in {
		return fmt.Errorf("%w: a question of a job of kind %s", mesh.ErrProtocol, h.Kind)
	}
	p := papers.Get().(*paper)
	defer papers.Put(p)
	if err := req.ReadBody(p.head[:]); err != nil {
		return unread(err)
	}
	about, err := parseHead(&p.head)
	if err != nil {
		return err
	}
	size := int(h.Length) - headBytes
	l, err := r.admit(asker, size)
	if err != nil {
		return err
	}
	defer r.leave(asker, l, size)
	body, err := req.TakeBody(p.body, size)
	if err != nil {
		return unread(err)
	}
	p.body = body
	s, from, err := r.enter(ctx, asker, l, about)
	if err != nil {
		return err
	}
	defer r.depart(l, about)
	defer s.running.Done()
	return s.serve(ctx, from, peer.Query{
		Service: about.service, Kind: kind, Epoch: about.epoch, Step: about.step, Part: about.part, Body: body, Limit: int(about.limit),
	}, req)
}

// unread returns an error that makes the peer repeat a question that did not arrive
// completely.
func unread(err error) error { return fmt.Errorf("%w: read a question: %w", mesh.ErrOverload, err) }

// serve answers a question. Its error is sent to the node that asked.
func (s *Session) serve(ctx context.Context, from int, q peer.Query, req Request) error {
	if s.handlers[q.Service] == nil {
		return mesh.Refuse(reasonNo, "nothing there answers service %d", q.Service)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The asking node may be gone without anyone knowing yet. The session's end must not
	// wait until the network notices.
	var replying atomic.Bool
	defer context.AfterFunc(s.life, func() {
		cancel(context.Cause(s.life))
		if replying.Load() {
			req.Abort(mesh.ErrShutdown)
		}
	})()
	begun, said, broken := false, false, error(nil)
	err := s.guarded(ctx, from, q, func(parts ...[]byte) error {
		size := 0
		for _, p := range parts {
			size += len(p)
		}
		switch {
		case said || broken != nil:
			return errors.New("a question is answered once")
		case size > q.Limit:
			return fmt.Errorf("an answer of %d bytes is over the limit of %d", size, q.Limit)
		}
		begun = true
		replying.Store(true)
		defer replying.Store(false)
		if s.life.Err() != nil { // otherwise whoever ends the session sees that there is a reply to abort
			return context.Cause(s.life)
		}
		if q.Service == peer.Rows || q.Service == peer.Skeletons {
			broken = req.ReplyCopied(1, parts...) // they lie in mapped shards
		} else {
			broken = req.Reply(1, parts...)
		}
		said = broken == nil
		return broken
	})
	switch {
	case said:
		if err != nil {
			s.registry.log.Debug("after its answer a handler failed", "service", q.Service, "err", err)
		}
		return nil
	case broken != nil:
		return broken
	case s.life.Err() != nil && s.registry.superseded(s):
		return mesh.ErrSuperseded
	case s.life.Err() != nil:
		return mesh.Refuse(reasonLater, "it has ended its part of the job: %v", context.Cause(s.life))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case begun && err != nil:
		// What was to be sent could not be read, or a fault ended it. It is too late for a sentence:
		// whoever has some of the answer asks again.
		return fmt.Errorf("%w: %w", mesh.ErrOverload, err)
	case err == nil:
		return mesh.Refuse(reasonNo, "service %d there gave no answer", q.Service)
	case errors.Is(err, peer.ErrEarly):
		return mesh.Refuse(reasonEarly, "%v", err)
	}
	return mesh.Refuse(reasonNo, "%s", strings.TrimPrefix(err.Error(), peer.ErrRefused.Error()+": "))
}

// guarded calls a handler and recovers from a panic, which ends the question but not the
// node.
func (s *Session) guarded(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			if err = mapped.Unreadable(fault); err != nil {
				s.registry.log.Warn("a question could not be answered", "service", q.Service, "err", err)
				return
			}
			s.registry.log.Error("a fault of hopmesh ended a question", "service", q.Service, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault of hopmesh itself ended the question (%v): please report it, with what the log of node %s says of it", fault, s.names[s.self])
		}
	}()
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err) // before the above recovers
	return s.handlers[q.Service](ctx, from, q, reply)
}
