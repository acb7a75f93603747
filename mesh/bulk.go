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
	// progressTimeout bounds how long a transfer may move nothing. Its whole
	// length is not bounded: a slow link is no failure.
	progressTimeout = 10 * time.Second
	// maxRequest bounds what a peer may ask with: a list of a quarter million
	// row numbers, at most.
	maxRequest = 2 << 20
)

// urgency orders bulk streams of one connection: what a step waits for goes
// before what the next step will want. Lower is sooner.
var urgency = [kinds]int8{Gradient: 1, Activation: 1, Model: 2, Topology: 3, Feature: 3, Shard: 6}

// A BulkHandler answers one bulk request. It reads the request's payload with
// ReadBody and answers once with Reply. The context ends when the generation
// does, when the asker gives up, and with the mesh.
type BulkHandler func(ctx context.Context, r *Request) error

// HandleBulk registers who answers bulk requests of this kind. Before Ready
// only.
func (m *Mesh) HandleBulk(k Kind, h BulkHandler) {
	m.handlers.mu.Lock()
	defer m.handlers.mu.Unlock()
	m.handlers.bulk[k] = h
}

// A Request is one bulk request, as the node that serves it sees it.
type Request struct {
	Header
	Peer string

	flow flow
	body uint64 // bytes of the payload not yet read
}

// ReadBody reads the next len(dst) bytes of the request's payload.
func (r *Request) ReadBody(dst []byte) error {
	if uint64(len(dst)) > r.body {
		return fmt.Errorf("%w: a payload of %d bytes, read beyond its end", ErrProtocol, r.Length)
	}
	r.body -= uint64(len(dst))
	return r.flow.read(dst)
}

// Reply answers with count items made of these parts, sent one after another
// without being joined. The parts may be reused when it returns.
func (r *Request) Reply(count uint64, parts ...[]byte) error {
	h := r.Header
	h.Count, h.Length = count, 0
	for _, p := range parts {
		h.Length += uint64(len(p))
	}
	var b [headerSize]byte
	if err := r.flow.write(h.append(b[:0])); err != nil {
		return err
	}
	for _, p := range parts {
		if err := r.flow.write(p); err != nil {
			return err
		}
	}
	return r.flow.stream.Close()
}

// Fetch asks a peer for h.Count items and reads exactly len(dst) bytes of answer
// into dst. Nothing is allocated for the payload and nothing is asked for that
// has no buffer waiting, so no stream can use up the connection's window unread.
// It is bounded by progress, not by total time, and by ctx.
func (m *Mesh) Fetch(ctx context.Context, peer string, h Header, request, dst []byte) error {
	err := m.fetch(ctx, peer, h, request, dst)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("fetch %s of generation %d from node %s: %w", h.Kind, h.Generation, peer, explain(err))
}

func (m *Mesh) fetch(ctx context.Context, peer string, h Header, request, dst []byte) error {
	if len(request) > maxRequest {
		return fmt.Errorf("a request of %d bytes is over the limit of %d", len(request), maxRequest)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := m.current.enter(ctx, h.Generation, func() { cancel(ErrSuperseded) })
	if err != nil {
		return err
	}
	defer leave()
	l, err := m.pool.get(ctx, peer, bulk)
	if err != nil {
		return err
	}
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	l.streams.Add(1)
	defer l.streams.Add(-1)
	stop := context.AfterFunc(ctx, func() { reset(s, codeOf(context.Cause(ctx))) })
	defer stop()
	s.SetPriority(urgency[h.Kind], true)
	f := flow{stream: s, meter: &m.meter, kind: h.Kind}
	m.meter.request(h.Kind)

	h.Length = uint64(len(request))
	var b [headerSize]byte
	err = f.write(append(h.append(b[:0]), request...))
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = f.readAnswer(h, dst)
	}
	if err != nil {
		reset(s, codeOf(err))
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
	}
	return err
}

// readAnswer compares the answer with what was asked before reading any of it.
func (f *flow) readAnswer(asked Header, dst []byte) error {
	var b [headerSize]byte
	if err := f.read(b[:]); err != nil {
		return err
	}
	got, err := parseHeader(&b)
	if err != nil {
		return err
	}
	if got.Kind != asked.Kind || got.Generation != asked.Generation || got.Step != asked.Step ||
		got.Count != asked.Count || got.Length != uint64(len(dst)) {
		return fmt.Errorf("%w: asked for %d items in %d bytes, offered %d in %d", ErrProtocol,
			asked.Count, len(dst), got.Count, got.Length)
	}
	return f.read(dst)
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
	var b [headerSize]byte
	_ = s.SetReadDeadline(time.Now().Add(openTimeout))
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return err
	}
	h, err := parseHeader(&b)
	if err != nil {
		return err
	}
	if h.Length > maxRequest {
		return fmt.Errorf("%w: a request of %d bytes", ErrProtocol, h.Length)
	}
	f := flow{stream: s, meter: &m.meter, kind: h.Kind}
	m.meter.received(h.Kind, headerSize)
	s.SetPriority(urgency[h.Kind], true)

	wait, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	select {
	case <-m.handlers.ready:
	case <-wait.Done():
		return ErrOverload
	}
	m.handlers.mu.RLock()
	handle := m.handlers.bulk[h.Kind]
	m.handlers.mu.RUnlock()
	if handle == nil {
		return fmt.Errorf("%w: nothing here serves %s", ErrProtocol, h.Kind)
	}
	leave, err := m.current.enter(wait, h.Generation, func() { cancel(ErrSuperseded) })
	if err != nil {
		return err
	}
	defer leave()
	// The asker is gone when it stops reading: no use in preparing more.
	gone := context.AfterFunc(s.Context(), func() { cancel(context.Canceled) })
	defer gone()
	return handle(ctx, &Request{Header: h, Peer: l.peer, flow: f, body: h.Length})
}

// flow reads and writes one bulk stream: metered, and bounded by progress.
type flow struct {
	stream *quic.Stream
	meter  *Meter
	kind   Kind

	readUntil, writeUntil time.Time
}

// read fills dst. An early end is io.ErrUnexpectedEOF, never a short success.
func (f *flow) read(dst []byte) error {
	for len(dst) > 0 {
		if now := time.Now(); f.readUntil.Sub(now) < progressTimeout/2 {
			f.readUntil = now.Add(progressTimeout)
			_ = f.stream.SetReadDeadline(f.readUntil)
		}
		n, err := f.stream.Read(dst)
		f.meter.received(f.kind, n)
		dst = dst[n:]
		if err != nil && len(dst) > 0 {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// writeChunk is how much is handed to quic-go at a time: its Write returns only
// when all of it is sent, so the deadline must allow for no more than this.
const writeChunk = 256 << 10

func (f *flow) write(src []byte) error {
	for len(src) > 0 {
		now := time.Now()
		if f.writeUntil.Sub(now) < progressTimeout/2 {
			f.writeUntil = now.Add(progressTimeout)
			_ = f.stream.SetWriteDeadline(f.writeUntil)
		}
		n, err := f.stream.Write(src[:min(len(src), writeChunk)])
		f.meter.sent(f.kind, n)
		src = src[n:]
		if err != nil {
			return err
		}
	}
	return nil
}
