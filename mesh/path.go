package mesh

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/mesh/gone"
	"github.com/quic-go/quic-go"
)

// QUIC finds out how large the packets of a connection may be, but takes nothing back: when a
// path comes to carry less, say since traffic moved to a tunnel, large packets vanish, small ones
// pass, and the connection neither goes on nor ends. A new connection begins with small packets.
// So this node checks connections on which large packets seem to vanish, and replaces one if
// a new one carries what the old one does not. Each side checks the packets that it sends.

const (
	pathTick  = time.Second
	pathWait  = 2 * time.Second // for the answer to a check
	pathRest  = 1               // ticks between checks of one connection
	pathBytes = 2048            // are sent in a check: enough to fill a packet
)

// pathWatch is what was sent on a connection until the last tick.
type pathWatch struct {
	packets, bytes uint64
	rest           int // ticks to wait until the next check
}

// vanishing reports whether a connection seems to send the same large packets again and again:
// in a second only a few packets, and large ones among them.
func (w *pathWatch) vanishing(s quic.ConnectionStats) bool {
	packets, bytes := s.PacketsSent-w.packets, s.BytesSent-w.bytes
	w.packets, w.bytes = s.PacketsSent, s.BytesSent
	if w.rest > 0 {
		w.rest--
		return false
	}
	return packets > 0 && packets <= 32 && bytes >= LeastPacket && bytes/packets >= 400
}

// paths checks connections.
type paths struct{ mesh *Mesh }

// watch checks connections until the mesh closes.
func (p paths) watch() {
	m := p.mesh
	tick := time.NewTicker(pathTick)
	defer tick.Stop()
	watched := map[*link]*pathWatch{}
	for {
		select {
		case <-tick.C:
		case <-m.ctx.Done():
			return
		}
		for l := range watched {
			if !l.alive() {
				delete(watched, l)
			}
		}
		for _, l := range m.pool.links() {
			w := watched[l]
			if w == nil {
				w = new(pathWatch)
				watched[l] = w
			}
			if w.vanishing(l.conn.ConnectionStats()) && l.checked.CompareAndSwap(false, true) {
				w.rest = pathRest
				m.wg.Go(func() {
					defer l.checked.Store(false)
					p.check(l)
				})
			}
		}
	}
}

// links lists the connections for package gone. A process that takes the place of another has younger
// ones, by which parts knows.
func (p paths) links() (list []gone.Link) {
	for _, l := range p.mesh.pool.links() {
		list = append(list, gone.Link{
			Key: l, Peer: l.peer, Addr: addrPort(l.conn.RemoteAddr()), Done: l.conn.Context().Done(), Ended: func() { p.mesh.pool.parts(l) },
			Counts: func() (sent, received uint64) { s := l.conn.ConnectionStats(); return s.PacketsSent, s.PacketsReceived },
			Ask:    func(ctx context.Context) <-chan struct{} { return p.probe(ctx, l) },
			Close:  func() { _ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodeShutdown), "its process has ended") },
		})
	}
	return list
}

// check replaces a connection if what this node sends on it vanishes, and on a new one does
// not.
func (p paths) check(l *link) {
	m := p.mesh
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	old := p.probe(ctx, l)
	timer := time.NewTimer(pathWait)
	defer timer.Stop()
	select {
	case <-old:
		return
	case <-timer.C:
	case <-l.conn.Context().Done():
		return
	}
	dial, done := context.WithTimeout(ctx, dialTimeout)
	defer done()
	fresh, err := m.pool.dial(dial, addrPort(l.conn.RemoteAddr()), l.peer, l.class)
	if err != nil || fresh == l {
		return // the node may be gone, or the path; or the peer was faster
	}
	timer.Reset(pathWait)
	select {
	case <-p.probe(ctx, fresh):
	case <-timer.C:
		return
	case <-l.conn.Context().Done():
		return
	}
	select {
	case <-old: // late, but it came
		return
	default:
	}
	m.cfg.Log.Warn("large packets no longer reach a node: the MTU of the path has shrunk; a new connection with smaller packets replaces the old one",
		"peer", l.peer, "address", l.conn.RemoteAddr())
	_ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodePath), "large packets no longer arrive")
}

// probe sends enough to fill a packet, and closes the channel that it returns once the peer has
// answered, if only by refusing the stream.
func (p paths) probe(ctx context.Context, l *link) <-chan struct{} {
	answered := make(chan struct{})
	s, err := l.conn.OpenStream()
	if err != nil {
		close(answered) // so many streams: nothing can be said
		return answered
	}
	s.SetPriority(0, true)
	p.mesh.wg.Go(func() {
		stop := context.AfterFunc(ctx, func() { reset(s, CodeDone) })
		defer stop()
		b := make([]byte, pathBytes)
		b[0] = streamPath
		if _, err := s.Write(b); err == nil {
			_ = s.Close()
			_, err = io.ReadFull(s, b[:1])
			if err == nil || ended(err) {
				close(answered)
			}
		} else if ended(err) {
			close(answered)
		}
		reset(s, CodeDone)
	})
	return answered
}

// ended reports whether the peer ended a stream.
func ended(err error) bool {
	se, ok := errors.AsType[*quic.StreamError](err)
	return errors.Is(err, io.EOF) || ok && se.Remote
}

// servePath answers a check of which the first n bytes were read.
func servePath(meter *Meter, s *quic.Stream, n int64) {
	_ = s.SetDeadline(time.Now().Add(openTimeout))
	if _, err := io.CopyN(io.Discard, s, pathBytes-n); err != nil {
		reset(s, CodeProtocol)
		return
	}
	meter.received(Control, pathBytes)
	_, _ = s.Write([]byte{streamPath})
	meter.sent(Control, 1)
	_ = s.Close()
	s.CancelRead(quic.StreamErrorCode(CodeDone))
}
