package mesh

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/quic-go/quic-go"
)

// Question is a request for Fetch, with the limits of its answer.
type Question struct {
	// Header describes the request. Its Length is ignored.
	Header
	// Preface and Body are sent one after the other. They may be reused when Fetch
	// returns.
	Preface, Body []byte
	// Into receives the answer if it has room. Otherwise the answer is put into new
	// memory, which grows as bytes arrive.
	Into []byte
	// Limit bounds the answer in bytes and is checked before any is read. If Exact is
	// set, the answer must have exactly that length.
	Limit int
	Exact bool
	// Patience bounds how long the answer may take to begin, as its node may have to
	// compute it first. 0 means progressTimeout, which also bounds each pause in the
	// rest of the answer.
	Patience time.Duration
}

// Fetch sends a request to a peer and returns its answer. The answer always has memory
// to go to, so no stream can fill the connection's window unread. Fetch is bounded by
// progress, not by total time, and by ctx. A *Refusal in the error comes from the peer.
func (m *Mesh) Fetch(ctx context.Context, peer string, q Question) ([]byte, error) {
	answer, err := m.fetch(ctx, peer, &q)
	if err == nil {
		return answer, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	of := ""
	if q.Generation != 0 {
		of = fmt.Sprintf(" of generation %d", q.Generation)
	}
	return nil, fmt.Errorf("fetch %s%s from node %s: %w", q.Kind, of, peer, explain(err))
}

// fetch binds the request to its generation, if it has one.
func (m *Mesh) fetch(ctx context.Context, peer string, q *Question) ([]byte, error) {
	if n := len(q.Preface) + len(q.Body); n > maxRequest {
		return nil, fmt.Errorf("a request of %d bytes is over the limit of %d", n, maxRequest)
	}
	if q.Generation == 0 {
		return m.askSomewhere(ctx, peer, q)
	}
	bound, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := m.current.enter(bound, q.Generation, func() { cancel(ErrSuperseded) })
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.askSomewhere(bound, peer, q)
}

// mostMoves bounds how often a request is made again because the peer has retired the
// connection.
const mostMoves = 8

// askSomewhere asks on the connection for new requests, and on another if the peer has
// retired it.
func (m *Mesh) askSomewhere(ctx context.Context, peer string, q *Question) ([]byte, error) {
	for range mostMoves {
		l, err := m.pool.get(ctx, peer, bulk)
		if err != nil {
			return nil, err
		}
		if !l.enter() {
			continue // retired since
		}
		begun := time.Now()
		answer, err := m.ask(ctx, l, q)
		l.leave()
		if !movedOn(err, time.Since(begun)) {
			return answer, err
		}
		m.pool.moved(l)
	}
	return nil, ErrShutdown
}

func (m *Mesh) ask(ctx context.Context, l *link, q *Question) ([]byte, error) {
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { reset(s, codeOf(context.Cause(ctx))) })
	defer stop()
	s.SetPriority(urgency[q.Kind], true)
	f := newFlow(s, &m.meter, q.Kind)
	defer f.release()
	m.meter.request(q.Kind)

	err = f.writeQuestion(q)
	var answer []byte
	if err == nil {
		answer, err = f.readAnswer(q)
	}
	if err != nil {
		reset(s, codeOf(err))
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	// The end of the stream may come after the answer. A stream whose end nobody reads stays
	// in memory as long as its connection.
	s.CancelRead(quic.StreamErrorCode(CodeDone))
	return answer, nil
}

// writeQuestion sends a small request in one write, and never copies a large one.
func (f *flow) writeQuestion(q *Question) error {
	h := q.Header
	h.Flags &^= flagRefusal
	h.Length = uint64(len(q.Preface) + len(q.Body))
	b, body := h.append(f.scratch[:0]), q.Body
	if headerSize+h.Length <= uint64(len(f.scratch)) {
		b, body = append(append(b, q.Preface...), body...), nil
	}
	err := f.write(b)
	if err == nil && len(b) == headerSize {
		err = f.write(q.Preface)
	}
	if err == nil {
		err = f.write(body)
	}
	return f.close(err)
}

// readAnswer checks the answer's header against the request before reading any of it.
func (f *flow) readAnswer(q *Question) ([]byte, error) {
	b := (*[headerSize]byte)(f.scratch[:])
	patience := q.Patience
	if patience == 0 {
		patience = progressTimeout
	}
	n, err := f.await(b[:], patience)
	if err == nil {
		err = f.read(b[n:])
	}
	if err != nil {
		return nil, err
	}
	got, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	limit := uint64(max(q.Limit, 0))
	switch {
	case got.Kind != q.Kind || got.Generation != q.Generation || got.Step != q.Step:
		return nil, fmt.Errorf("%w: an answer to another question", ErrProtocol)
	case got.Flags&flagRefusal != 0:
		return nil, f.readRefusal(got)
	case got.Count != q.Count || q.Exact && got.Length != limit:
		return nil, fmt.Errorf("%w: asked for %d items in %d bytes, offered %d in %d", ErrProtocol, q.Count, limit, got.Count, got.Length)
	case got.Length > limit:
		return nil, fmt.Errorf("%w: an answer of %d bytes is over the limit of %d", ErrProtocol, got.Length, limit)
	}
	return f.take(q.Into, int(got.Length))
}

// maxRefusal bounds a refusal on the wire: its reason and its sentence.
const maxRefusal = 2 << 10

func (f *flow) readRefusal(h Header) error {
	if h.Length > maxRefusal {
		return fmt.Errorf("%w: a refusal of %d bytes", ErrProtocol, h.Length)
	}
	b, err := f.take(nil, int(h.Length))
	if err != nil {
		return err
	}
	if _, err = readAnswer(bytes.NewReader(b)); err == nil {
		return fmt.Errorf("%w: a refusal that does not refuse", ErrProtocol)
	}
	return err
}
