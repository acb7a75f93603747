package mesh

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// streamConn adapts a QUIC stream to the net.Conn that memberlist and Raft expect.
type streamConn struct {
	stream *quic.Stream
	local  net.Addr
	remote net.Addr
	meter  *Meter
	free   func() // called once, by Close

	once  sync.Once
	write sync.Mutex // held by Write; see Close
}

var _ net.Conn = (*streamConn)(nil)

// Read maps code 0, of the stream or of the connection, to io.EOF, because Raft's
// transport logs anything else as an error. Bulk streams must not do so: there an early
// end is a failure.
func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.stream.Read(p)
	c.meter.received(Control, n)
	if endedWell(err) {
		err = io.EOF
	}
	return n, err
}

func endedWell(err error) bool {
	if se, ok := errors.AsType[*quic.StreamError](err); ok {
		return se.ErrorCode == quic.StreamErrorCode(CodeDone)
	}
	if ae, ok := errors.AsType[*quic.ApplicationError](err); ok {
		return Code(ae.ErrorCode) == CodeDone || Code(ae.ErrorCode) == CodeGoodbye
	}
	return false
}

func (c *streamConn) Write(p []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	n, err := c.stream.Write(p)
	c.meter.sent(Control, n)
	return n, err
}

// Close ends both halves. quic-go's Close must not run concurrently with a Write, so a
// deadline in the past first unblocks the writer, and the write half ends under the
// writer's mutex. Data already written is still delivered.
func (c *streamConn) Close() error {
	c.once.Do(func() {
		c.stream.CancelRead(quic.StreamErrorCode(CodeDone))
		_ = c.stream.SetWriteDeadline(time.Unix(1, 0))
		c.write.Lock()
		defer c.write.Unlock()
		_ = c.stream.Close()
		c.free()
	})
	return nil
}

func (c *streamConn) LocalAddr() net.Addr                { return c.local }
func (c *streamConn) RemoteAddr() net.Addr               { return c.remote }
func (c *streamConn) SetDeadline(t time.Time) error      { return c.stream.SetDeadline(t) }
func (c *streamConn) SetReadDeadline(t time.Time) error  { return c.stream.SetReadDeadline(t) }
func (c *streamConn) SetWriteDeadline(t time.Time) error { return c.stream.SetWriteDeadline(t) }

// nodeAddr is a node id as a net.Addr.
type nodeAddr string

func (nodeAddr) Network() string  { return "mesh" }
func (a nodeAddr) String() string { return string(a) }

// Layer is the net.Listener and dialler of one kind of control stream. Raft runs over
// one.
type Layer struct {
	mesh  *Mesh
	kind  byte
	conns chan net.Conn

	once   sync.Once
	closed chan struct{}
}

func newLayer(m *Mesh, kind byte) *Layer {
	return &Layer{mesh: m, kind: kind, conns: make(chan net.Conn, 16), closed: make(chan struct{})}
}

// Accept returns the next stream that a peer opened. Its RemoteAddr is the peer's node
// id.
func (l *Layer) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-l.mesh.ctx.Done():
		return nil, net.ErrClosed
	}
}

// deliver passes a new stream to Accept, or ends it if nobody takes it in time, so that
// streams cannot pile up.
func (l *Layer) deliver(ctx context.Context, c *streamConn) {
	timer := time.NewTimer(openTimeout)
	defer timer.Stop()
	select {
	case l.conns <- c:
		return
	case <-timer.C:
		c.stream.CancelWrite(quic.StreamErrorCode(CodeOverload))
	case <-l.closed:
	case <-ctx.Done():
	}
	_ = c.Close()
}

// Dial opens a stream to the node with this id at its last known address, even if
// gossip believes that it failed: after a partition, Raft is often the first to get
// through.
func (l *Layer) Dial(id string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.mesh.ctx, timeout)
	defer cancel()
	link, err := l.mesh.pool.get(ctx, id, control)
	if err != nil {
		return nil, err
	}
	c, err := l.mesh.openControl(ctx, link, l.kind)
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}

// Close makes Accept return. Streams already accepted stay open.
func (l *Layer) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns this node's id.
func (l *Layer) Addr() net.Addr { return nodeAddr(l.mesh.cfg.Identity.ID()) }
