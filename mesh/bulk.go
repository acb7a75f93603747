package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// MaxBody bounds the body of a request in bytes, not counting a preface.
	MaxBody = 16 << 20
	// maxRequest bounds a request including its preface.
	maxRequest = MaxBody + 1<<10
)

// urgency orders the bulk streams of one connection: data that the current step needs
// goes before data for the next. Lower is sooner.
var urgency = [kinds]int8{Gradient: 1, Activation: 1, Model: 2, Topology: 3, Feature: 3, Shard: 6}

// BulkHandler answers one bulk request. It reads the request's payload with ReadBody or
// TakeBody and answers once with Reply. If it returns an error that wraps a *Refusal
// instead, the requester receives the Refusal. The context ends when the generation
// does, when the requester gives up, and when the mesh closes. The handler owns the
// request until it returns.
type BulkHandler func(ctx context.Context, r *Request) error

// HandleBulk registers the handler of bulk requests of this kind. It must be called
// before Ready.
func (m *Mesh) HandleBulk(k Kind, h BulkHandler) {
	m.handlers.mu.Lock()
	defer m.handlers.mu.Unlock()
	m.handlers.bulk[k] = h
}

// Request is one bulk request on the node that serves it.
type Request struct {
	Header
	Peer string

	flow    *flow
	stream  *quic.Stream // the flow's; Abort may come after the flow has another
	body    uint64       // bytes of the payload not yet read
	replied bool
}

// ReadBody reads the next len(dst) bytes of the request's payload.
func (r *Request) ReadBody(dst []byte) error {
	if uint64(len(dst)) > r.body {
		return fmt.Errorf("%w: a payload of %d bytes, read beyond its end", ErrProtocol, r.Length)
	}
	r.body -= uint64(len(dst))
	return r.flow.read(dst)
}

// TakeBody reads the next n bytes of the request's payload, into into if it has room,
// else into new memory that grows as they arrive.
func (r *Request) TakeBody(into []byte, n int) ([]byte, error) {
	if n < 0 || uint64(n) > r.body {
		return nil, fmt.Errorf("%w: a payload of %d bytes, read beyond its end", ErrProtocol, r.Length)
	}
	r.body -= uint64(n)
	return r.flow.take(into, n)
}

// Reply answers with count items consisting of these parts, which are sent one after
// another, joined only where there are many small ones. The parts may be reused when it
// returns.
func (r *Request) Reply(count uint64, parts ...[]byte) error {
	return r.reply(r.Flags, count, parts...)
}

// ReplyCopied is Reply of parts that are memory of mapped files: they are read by this
// goroutine alone, which may recover where they can't be read any more.
func (r *Request) ReplyCopied(count uint64, parts ...[]byte) error {
	r.flow.copies = true
	return r.reply(r.Flags, count, parts...)
}

// Abort ends the request at once with this cause. Any read or write of it returns, even
// if the requester has vanished unnoticed. It may be called from any goroutine at any
// time. An answer not yet delivered may be lost.
func (r *Request) Abort(cause error) { reset(r.stream, codeOf(cause)) }

func (r *Request) reply(flags uint8, count uint64, parts ...[]byte) error {
	r.replied = true
	h := r.Header
	h.Flags, h.Count, h.Length = flags, count, 0
	for _, p := range parts {
		h.Length += uint64(len(p))
	}
	err := r.flow.write(h.append(r.flow.scratch[:0]))
	if err == nil {
		err = r.flow.writeAll(parts)
	}
	return r.flow.close(err)
}

// refuse answers with a refusal.
func (r *Request) refuse(why *Refusal) error {
	short := Refusal{why.Reason, why.Message[:min(len(why.Message), maxRefusal/2)]}
	return r.reply(r.Flags|flagRefusal, 0, encodeAnswer(nil, &short))
}

// serveBulk answers one bulk request.
func (m *Mesh) serveBulk(l *link, s *quic.Stream) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			reset(s, codeOf(err))
		}
	})
	defer stop()
	err := m.answerBulk(ctx, cancel, l, s)
	if err != nil {
		reset(s, codeOf(err))
		m.cfg.Log.Debug("bulk request failed", "peer", l.peer, "err", explain(err))
		return
	}
	s.CancelRead(quic.StreamErrorCode(CodeDone))
}

func (m *Mesh) answerBulk(ctx context.Context, cancel context.CancelCauseFunc, l *link, s *quic.Stream) error {
	f := newFlow(s, &m.meter, Control)
	defer f.release()
	b := (*[headerSize]byte)(f.scratch[:])
	_ = s.SetReadDeadline(time.Now().Add(openTimeout))
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return err
	}
	if b[0] == streamPath {
		servePath(&m.meter, s, headerSize)
		return nil
	}
	h, err := parseHeader(b)
	if err != nil {
		return err
	}
	if h.Length > maxRequest {
		return fmt.Errorf("%w: a request of %d bytes", ErrProtocol, h.Length)
	}
	f.kind = h.Kind
	m.meter.received(h.Kind, headerSize)
	s.SetPriority(urgency[h.Kind], true)
	handle, leave, err := m.admitBulk(ctx, cancel, h)
	if err != nil {
		return err
	}
	defer leave()
	// The requester has given up if it stopped reading, so stop preparing the answer.
	gone := context.AfterFunc(s.Context(), func() { cancel(context.Canceled) })
	defer gone()
	r := &Request{Header: h, Peer: l.peer, flow: f, stream: s, body: h.Length}
	err = handle(ctx, r)
	if no, ok := errors.AsType[*Refusal](err); ok && !r.replied {
		return r.refuse(no)
	}
	return err
}

// admitBulk returns the handler of a request, once this node is ready and has reached
// the generation of the requester's plan.
func (m *Mesh) admitBulk(ctx context.Context, cancel context.CancelCauseFunc, h Header) (handle BulkHandler, leave func(), err error) {
	select {
	case <-m.handlers.ready:
		if h.Generation == 0 {
			handle, err = m.bulkHandler(h.Kind)
			return handle, func() {}, err
		}
	default:
	}
	wait, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	select {
	case <-m.handlers.ready:
	case <-wait.Done():
		return nil, nil, ErrOverload
	}
	if handle, err = m.bulkHandler(h.Kind); err != nil {
		return nil, nil, err
	}
	leave, err = m.current.enter(wait, h.Generation, func() { cancel(ErrSuperseded) })
	return handle, leave, err
}

func (m *Mesh) bulkHandler(k Kind) (BulkHandler, error) {
	m.handlers.mu.RLock()
	defer m.handlers.mu.RUnlock()
	if h := m.handlers.bulk[k]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: nothing here serves %s", ErrProtocol, k)
}
