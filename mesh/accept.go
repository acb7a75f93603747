package mesh

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// The first byte of a control stream is its kind.
const (
	streamRaft   byte = 'R'
	streamGossip byte = 'G'
	streamCall   byte = 'C'
	streamPath   byte = 'P' // a check of what the path carries; on bulk connections, too
)

// accept passes each connection to the server of its protocol. It runs until the
// listener closes.
func (m *Mesh) accept() {
	for {
		conn, err := m.listener.Accept(m.ctx)
		if err != nil {
			return
		}
		m.joins.gate.Passed(conn)
		negotiated := conn.ConnectionState().TLS.NegotiatedProtocol
		protocol, wire := identity.Protocol(negotiated)
		_, spoken := m.cfg.Numbers.Wire.Common(Range{Min: wire, Max: wire})
		switch {
		case negotiated == identity.ALPNJoin:
			m.joins.take(conn)
		case spoken && protocol == identity.ALPNControl:
			m.admitPeer(conn, control)
		case spoken && protocol == identity.ALPNBulk:
			m.admitPeer(conn, bulk)
		default:
			m.joins.turnAway(conn)
		}
	}
}

func (m *Mesh) admitPeer(conn *quic.Conn, c class) {
	if id, err := identity.PeerID(conn.ConnectionState().TLS); err == nil {
		m.members.sights.remove(id)
	}
	if _, err := m.pool.add(conn, c, false); err != nil {
		m.cfg.Log.Debug("refused a connection", "from", conn.RemoteAddr(), "err", err)
	}
}

// maxControlStreams bounds how many streams of one control connection may be in use.
// Each may hold the buffers of Raft or of a call.
const maxControlStreams = 96

// serve handles the streams that the peer opens until the connection ends, and returns
// when all of them are finished. The pool ends it when the mesh closes, and says goodbye: it
// has to know it until then.
func (m *Mesh) serve(l *link) {
	for {
		s, err := l.conn.AcceptStream(context.Background())
		if err != nil {
			ended, ok := errors.AsType[*quic.ApplicationError](err)
			if !ok || !ended.Remote {
				return
			}
			switch Code(ended.ErrorCode) {
			case CodeUnauthorised:
				if m.cfg.OnRefused != nil {
					m.cfg.OnRefused(l.peer)
				}
			case CodeVersion:
				m.members.sights.add(l.peer, parseReason(ended.ErrorMessage))
			case CodeGoodbye:
				m.pool.parts(l)
			}
			return
		}
		if l.class == bulk {
			if !l.enter() {
				reset(s, CodeIdle)
				continue
			}
			m.wg.Go(func() {
				defer l.leave()
				m.serveBulk(l, s)
			})
			continue
		}
		l.opened.Add(1)
		if l.streams.Add(1) > maxControlStreams {
			reset(s, CodeOverload)
			l.leave()
			continue
		}
		m.wg.Go(func() { m.serveControl(l, s, l.leave) })
	}
}

// serveControl reads the byte that names the stream's kind. A peer that opens a stream
// and stays silent costs one goroutine for openTimeout.
func (m *Mesh) serveControl(l *link, s *quic.Stream, free func()) {
	var kind [1]byte
	_ = s.SetReadDeadline(time.Now().Add(openTimeout))
	if _, err := io.ReadFull(s, kind[:]); err != nil {
		reset(s, CodeProtocol)
		free()
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	m.meter.received(Control, 1)
	switch kind[0] {
	case streamCall:
		defer free()
		if l.retired.Load() {
			reset(s, CodeIdle)
			return
		}
		m.serveCall(l.peer, s)
	case streamPath:
		defer free()
		servePath(&m.meter, s, 1)
	case streamRaft:
		m.raft.deliver(m.ctx, m.wrap(l, s, free))
	case streamGossip:
		m.gossip.deliver(m.ctx, m.wrap(l, s, free))
	default:
		reset(s, CodeProtocol)
		free()
	}
}

func (m *Mesh) wrap(l *link, s *quic.Stream, free func()) *streamConn {
	return &streamConn{stream: s, local: nodeAddr(m.ID()), remote: nodeAddr(l.peer), meter: &m.meter, free: free}
}

// openControl opens a stream and writes its kind at once: until a byte is written, the
// peer does not know that the stream exists.
func (m *Mesh) openControl(ctx context.Context, l *link, kind byte) (*streamConn, error) {
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	l.opened.Add(1)
	l.streams.Add(1)
	c := m.wrap(l, s, l.leave)
	if _, err := c.Write([]byte{kind}); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// reset ends both halves of a stream so that the peer's reads and writes fail with the
// code instead of seeing a normal end.
func reset(s *quic.Stream, c Code) {
	s.CancelRead(quic.StreamErrorCode(c))
	s.CancelWrite(quic.StreamErrorCode(c))
}

// CheckNewcomer returns a refusal of a newcomer that speaks no version of this node's, or nil.
// The node that a newcomer reaches and the one that leads ask it.
func (m *Mesh) CheckNewcomer(r JoinRequest) error {
	if _, ok := r.Numbers.Wire.Common(m.cfg.Numbers.Wire); ok {
		return nil
	}
	version := r.Version
	if !plainVersion(version) {
		version = ""
	}
	m.cfg.Log.Warn("refused a newcomer of another version", "name", r.Name, "err", "it "+(&VersionError{version, r.Numbers.Wire}).And(m.cfg.Version, m.cfg.Numbers.Wire))
	return Refuse(RefusedVersion, "it runs hopmesh %s, which speaks %s on the wire, and this node hopmesh %s, which speaks %s: install the mesh's version here",
		m.cfg.Version, m.cfg.Numbers.Wire, version, r.Numbers.Wire)
}
