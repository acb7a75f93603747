package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	maxMethod   = 64
	maxCallBody = 1 << 20
	callTimeout = 10 * time.Second
)

// Refusal is a negative answer. It crosses the wire unchanged, so that the caller can
// distinguish reasons and show the message to a person.
type Refusal struct {
	Reason  string // for programs
	Message string // for people
}

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a Refusal with this reason and formatted message.
func Refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RefusalOf returns the reason of the Refusal that err wraps, or "".
func RefusalOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return ""
}

// CallHandler answers one call. The identity of peer is proven. The context ends with
// the call's deadline or the mesh.
type CallHandler func(ctx context.Context, peer string, body []byte) ([]byte, error)

// handlers holds the registered handlers of requests. A request that comes before its
// handler waits for ready, because peers may be faster than this node's start.
type handlers struct {
	mu    sync.RWMutex
	calls map[string]CallHandler
	bulk  map[Kind]BulkHandler
	ready chan struct{} // closed by Ready
	once  sync.Once
}

func (h *handlers) init() {
	h.calls, h.bulk, h.ready = map[string]CallHandler{}, map[Kind]BulkHandler{}, make(chan struct{})
}

// Handle registers the handler of calls to this method. It must be called before Ready.
func (m *Mesh) Handle(method string, h CallHandler) {
	m.handlers.mu.Lock()
	defer m.handlers.mu.Unlock()
	m.handlers.calls[method] = h
}

// Ready declares that all handlers are registered; requests wait for it.
func (m *Mesh) Ready() { m.handlers.once.Do(func() { close(m.handlers.ready) }) }

// Call sends a request to a peer and waits for its answer, at most ten seconds or until
// ctx ends. A *Refusal in the error comes from the peer.
func (m *Mesh) Call(ctx context.Context, peer, method string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	for range mostMoves {
		l, err1 := m.pool.get(ctx, peer, control)
		if err1 != nil {
			return nil, err1
		}
		var answer []byte
		begun := time.Now()
		if answer, err = m.callOn(ctx, l, method, body); err == nil {
			return answer, nil
		}
		if !movedOn(err, time.Since(begun)) {
			break
		}
		m.pool.moved(l)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
	return nil, fmt.Errorf("call %s on node %s: %w", method, peer, explain(err))
}

func (m *Mesh) callOn(ctx context.Context, l *link, method string, body []byte) ([]byte, error) {
	c, err := m.openControl(ctx, l, streamCall)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { reset(c.stream, CodeDone) })
	defer stop()
	return exchange(c, method, body)
}

// exchange writes a request and reads its answer:
//
//	request: u8 length of method, method, u32 length of body, body
//	answer:  u8 status (0 ok, 1 refused), then
//	         ok: u32 length, body; refused: u8 length, reason, u32 length, message
func exchange(rw io.ReadWriter, method string, body []byte) ([]byte, error) {
	if len(method) > maxMethod || len(body) > maxCallBody {
		return nil, fmt.Errorf("a call of %d bytes is over the limit of %d", len(body), maxCallBody)
	}
	req := append([]byte{byte(len(method))}, method...)
	req = binary.LittleEndian.AppendUint32(req, uint32(len(body)))
	if _, err := rw.Write(append(req, body...)); err != nil {
		return nil, err
	}
	return readAnswer(rw)
}

func readAnswer(r io.Reader) ([]byte, error) {
	var status [1]byte
	if _, err := io.ReadFull(r, status[:]); err != nil {
		return nil, err
	}
	switch status[0] {
	case 0:
		return readLong(r)
	case 1:
		reason, err := readShort(r)
		if err != nil {
			return nil, err
		}
		message, err := readLong(r)
		if err != nil {
			return nil, err
		}
		return nil, &Refusal{Reason: string(reason), Message: string(message)}
	}
	return nil, fmt.Errorf("%w: answer status %d", ErrProtocol, status[0])
}

func readRequest(r io.Reader) (method string, body []byte, err error) {
	name, err := readShort(r)
	if err != nil {
		return "", nil, err
	}
	body, err = readLong(r)
	return string(name), body, err
}

func readShort(r io.Reader) ([]byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	if n[0] > maxMethod {
		return nil, fmt.Errorf("%w: a name of %d bytes", ErrProtocol, n[0])
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(r, b)
	return b, err
}

// readLong checks the length before it allocates.
func readLong(r io.Reader) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxCallBody {
		return nil, fmt.Errorf("%w: a body of %d bytes", ErrProtocol, size)
	}
	// The buffer grows as bytes arrive, so that a length sent by a peer alone takes no
	// memory.
	var b bytes.Buffer
	_, err := io.CopyN(&b, r, int64(size))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

func encodeAnswer(body []byte, err error) []byte {
	if err == nil {
		b := []byte{0}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		return append(b, body...)
	}
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		refusal = &Refusal{Reason: "failed", Message: err.Error()}
	}
	reason := refusal.Reason[:min(len(refusal.Reason), maxMethod)]
	b := append([]byte{1, byte(len(reason))}, reason...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(refusal.Message)))
	return append(b, refusal.Message...)
}

// serveCall answers one call. It takes at most callTimeout, including waiting.
func (m *Mesh) serveCall(peer string, s *quic.Stream) {
	ctx, cancel := context.WithTimeout(m.ctx, callTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	method, body, err := readRequest(s)
	if err != nil {
		reset(s, CodeProtocol)
		return
	}
	m.meter.received(Control, len(method)+len(body)+5)
	m.meter.request(Control)
	select {
	case <-m.handlers.ready:
	case <-ctx.Done():
		reset(s, CodeOverload)
		return
	}
	m.handlers.mu.RLock()
	h := m.handlers.calls[method]
	m.handlers.mu.RUnlock()
	var answer []byte
	if h == nil {
		err = Refuse("unknown-call", "node %s runs a version of hopmesh that does not know %q", m.cfg.Name, method)
	} else {
		answer, err = h(ctx, peer, body)
	}
	out := encodeAnswer(answer, err)
	m.meter.sent(Control, len(out))
	if _, err := s.Write(out); err != nil {
		reset(s, CodeProtocol)
		return
	}
	_ = s.Close()
	s.CancelRead(quic.StreamErrorCode(CodeDone))
}
