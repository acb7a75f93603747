package mesh

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// class separates latency-critical streams from large ones. Unread streams use up their
// connection's flow control window, so Raft and gossip share no connection with bulk
// data.
type class uint8

const (
	control class = iota
	bulk
)

func (c class) alpn() string {
	if c == bulk {
		return identity.ALPNBulk
	}
	return identity.ALPNControl
}

const (
	dialTimeout = 5 * time.Second
	// crossed is how close together two connections must be to count as dialled by both
	// sides at once. Beyond it the newer one wins: the older may belong to a peer that
	// has since restarted.
	crossed = dialTimeout
	// retireAfter is how long a replaced connection may still serve its streams.
	retireAfter = time.Minute
	retireCheck = time.Second
	// retireQuiet is how many checks in a row must find a replaced connection without any
	// stream, so that the last answers have arrived when it is closed, unless the network was down
	// meanwhile: see movedOn.
	retireQuiet = 3
	// maxLinks bounds the connections that one peer can hold open.
	maxLinks = 8
)

// link is one QUIC connection to a proven peer.
type link struct {
	conn    *quic.Conn
	peer    string
	class   class
	dialled bool // by us
	born    time.Time
	number  uint64 // no other link of this node has it
	streams atomic.Int64
	opened  atomic.Int64 // streams so far
	checked atomic.Bool  // by paths, at this moment
	spare   atomic.Bool  // this side makes no new requests on it, and retires it
	retired atomic.Bool  // nor does it take any
}

// enter counts a stream, which leave ends, unless the connection is retired. A stream that
// has entered keeps the connection open.
func (l *link) enter() bool {
	l.streams.Add(1)
	l.opened.Add(1)
	if l.retired.Load() {
		l.leave()
		return false
	}
	return true
}

func (l *link) leave() { l.streams.Add(-1) }

func (l *link) alive() bool { return l.conn.Context().Err() == nil }

type linkKey struct {
	peer  string
	class class
}

// pool keeps the connections. New streams use at most one of each class per peer.
type pool struct {
	mesh *Mesh

	mu      sync.Mutex
	closed  bool
	current map[linkKey]*link
	all     map[*link]struct{}
	dialing map[string]*dialing
}

// dialing is one dial that several callers may wait for.
type dialing struct {
	done chan struct{}
	link *link
	err  error
}

func newPool(m *Mesh) *pool {
	return &pool{mesh: m, current: map[linkKey]*link{}, all: map[*link]struct{}{}, dialing: map[string]*dialing{}}
}

// get returns a live connection to the node, dialling its last known address if there
// is none.
func (p *pool) get(ctx context.Context, peer string, c class) (*link, error) {
	if peer == p.mesh.cfg.Identity.ID() {
		return nil, ErrSelf
	}
	if err := p.mesh.cfg.Allow(peer); err != nil {
		return nil, fmt.Errorf("node %s: %w", peer, err)
	}
	if l := p.ready(linkKey{peer, c}); l != nil {
		return l, nil
	}
	find := func() *link { return p.current[linkKey{peer, c}] }
	return p.single(ctx, fmt.Sprint(peer, "/", c), find, func(ctx context.Context) (*link, error) {
		addr, ok := p.mesh.address(peer)
		if !ok {
			return nil, fmt.Errorf("dial node %s: %w", peer, ErrNoAddress)
		}
		return p.dial(ctx, addr, peer, c)
	})
}

// ready returns the connection that new streams use, or nil.
func (p *pool) ready(key linkKey) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.current[key]; l != nil && !p.closed && l.alive() {
		return l
	}
	return nil
}

// getAt returns a connection to an address, for gossip: if its streams followed a node
// that has moved, gossip would keep the old address for ever. If peer is "", any member
// that answers there will do.
func (p *pool) getAt(ctx context.Context, addr netip.AddrPort, peer string) (*link, error) {
	find := func() *link {
		for _, l := range p.current {
			if l.class == control && l.alive() && addrPort(l.conn.RemoteAddr()) == addr && (peer == "" || l.peer == peer) {
				return l
			}
		}
		return nil
	}
	return p.single(ctx, peer+"@"+addr.String(), find, func(ctx context.Context) (*link, error) {
		return p.dial(ctx, addr, peer, control)
	})
}

// single returns the result of find, or of one dial that all callers with this key
// share. The dial continues if a caller gives up, bounded by dialTimeout.
func (p *pool) single(ctx context.Context, key string, find func() *link, dial func(context.Context) (*link, error)) (*link, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if l := find(); l != nil && l.alive() {
		p.mu.Unlock()
		return l, nil
	}
	d := p.dialing[key]
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		p.dialing[key] = d
		p.mesh.wg.Go(func() {
			ctx, cancel := context.WithTimeout(p.mesh.ctx, dialTimeout)
			defer cancel()
			d.link, d.err = dial(ctx)
			p.mu.Lock()
			delete(p.dialing, key)
			p.mu.Unlock()
			close(d.done)
		})
	}
	p.mu.Unlock()
	select {
	case <-d.done:
		return d.link, d.err
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", key, context.Cause(ctx))
	}
}

func (p *pool) dial(ctx context.Context, addr netip.AddrPort, peer string, c class) (*link, error) {
	tlsConf := p.mesh.cfg.Identity.ClientTLS(c.alpn(), peer, p.mesh.cfg.Allow)
	conn, err := p.mesh.transport.Dial(ctx, net.UDPAddrFromAddrPort(addr), tlsConf, quicConfig(c, p.mesh.windows))
	if err != nil {
		if peer == "" {
			peer = "at " + addr.String()
		}
		return nil, fmt.Errorf("dial node %s: %w", peer, explain(err))
	}
	return p.add(conn, c, true)
}

// add registers a connection whose handshake has ended, starts serving it, and decides
// whether new streams use it.
func (p *pool) add(conn *quic.Conn, c class, dialled bool) (*link, error) {
	id, err := identity.PeerID(conn.ConnectionState().TLS)
	if err != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeUnauthorised), "no node id")
		return nil, fmt.Errorf("accept a connection from %s: %w", conn.RemoteAddr(), err)
	}
	if id == p.mesh.cfg.Identity.ID() {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeDone), "own address")
		return nil, ErrSelf
	}
	// Authorise here instead of in the handshake, where the peer would see only a TLS
	// alert. Here it receives the reason.
	if err := p.mesh.cfg.Allow(id); err != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeUnauthorised), "not a member")
		return nil, fmt.Errorf("accept a connection from node %s: %w", id, err)
	}
	l := &link{conn: conn, peer: id, class: c, dialled: dialled, born: time.Now(), number: linkNumbers.Add(1)}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeGoodbye), "stopping")
		return nil, ErrClosed
	}
	if p.count(id) >= maxLinks {
		p.mu.Unlock()
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeOverload), "too many connections")
		return nil, fmt.Errorf("accept a connection from node %s: %w", id, ErrOverload)
	}
	p.all[l] = struct{}{}
	if !p.mesh.cfg.Identity.Accepts(conn.ConnectionState().TLS.PeerCertificates) { // since the handshake
		delete(p.all, l)
		p.mu.Unlock()
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeUnauthorised), "the certificate is of an earlier CA")
		return nil, fmt.Errorf("accept a connection from node %s: %w", id, identity.ErrForeignMesh)
	}
	key := linkKey{id, c}
	old := p.current[key]
	var spare *link
	switch {
	case old == nil || !old.alive():
		p.current[key] = l
	case p.replaces(l, old):
		p.current[key], spare = l, old
	default:
		spare = l
	}
	best := p.current[key]
	if spare != nil {
		spare.spare.Store(true)
	}
	p.mu.Unlock()

	p.mesh.members.returned(id)
	p.mesh.wg.Go(func() {
		p.mesh.serve(l)
		p.forget(l)
	})
	if spare != nil {
		p.mesh.wg.Go(func() { p.retire(spare) })
	}
	return best, nil
}

// replaces reports whether new streams should use the newer of two live connections. One that
// paths doubts is always replaced.
// When both sides dialled at once, both keep the one that the lower id dialled, so that
// they agree.
func (p *pool) replaces(newer, old *link) bool {
	if newer.born.Sub(old.born) > crossed || newer.dialled == old.dialled || old.checked.Load() {
		return true
	}
	lower := p.mesh.cfg.Identity.ID() < newer.peer
	return newer.dialled == lower
}

// count returns the number of connections of a peer. It is called with mu held.
func (p *pool) count(peer string) int {
	n := 0
	for l := range p.all {
		if l.peer == peer && l.alive() {
			n++
		}
	}
	return n
}

// links lists the live connections.
func (p *pool) links() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*link, 0, len(p.all))
	for l := range p.all {
		if l.alive() {
			list = append(list, l)
		}
	}
	return list
}

func (p *pool) forget(l *link) {
	p.mesh.windows.release(l.conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, l)
	if key := (linkKey{l.peer, l.class}); p.current[key] == l {
		delete(p.current, key)
	}
}

// retire closes a connection that new requests no longer use, once its streams are done.
// The peer may believe otherwise, as both need not see the same of two connections: its new
// requests are refused with CodeIdle, and it takes another connection for them. So does a request
// that comes when the connection is about to end: nobody has begun it.
func (p *pool) retire(l *link) {
	tick := time.NewTicker(retireCheck)
	defer tick.Stop()
	last := time.NewTimer(retireAfter)
	defer last.Stop()
	code := CodeIdle
	for quiet, opened := 0, int64(-1); quiet < retireQuiet; {
		select {
		case <-tick.C:
			l.retired.Store(true) // the peer has had time to see the other connection
			quiet++
			if n := l.opened.Load(); l.streams.Load() > 0 || n != opened {
				quiet, opened = 0, n
			}
		case <-last.C:
			quiet, code = retireQuiet, CodeShutdown
		case <-l.conn.Context().Done():
			return
		}
	}
	_ = l.conn.CloseWithError(quic.ApplicationErrorCode(code), "spare connection")
}

// moved makes new requests use another connection than this one, which the peer has
// retired: one that is there already, the youngest, or one that is dialled.
func (p *pool) moved(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := linkKey{l.peer, l.class}
	if p.closed || p.current[key] != l {
		return
	}
	delete(p.current, key)
	for other := range p.all {
		if other != l && other.peer == l.peer && other.class == l.class && other.alive() && !other.spare.Load() {
			if now := p.current[key]; now == nil || other.born.After(now.born) {
				p.current[key] = other
			}
		}
	}
	l.spare.Store(true)
	p.mesh.wg.Go(func() { p.retire(l) })
}

// renew retires every connection, so that new ones show the new certificate.
func (p *pool) renew() { p.retireAll(func(*link) bool { return true }) }

// distrust retires the connections of peers whose certificates are not accepted any more.
func (p *pool) distrust() {
	p.retireAll(func(l *link) bool {
		return !p.mesh.cfg.Identity.Accepts(l.conn.ConnectionState().TLS.PeerCertificates)
	})
}

func (p *pool) retireAll(these func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for l := range p.all {
		if !these(l) {
			continue
		}
		if key := (linkKey{l.peer, l.class}); p.current[key] == l {
			delete(p.current, key)
		}
		if !l.spare.Swap(true) {
			p.mesh.wg.Go(func() { p.retire(l) })
		}
	}
}

// enforce closes the connections of peers that are no longer allowed.
func (p *pool) enforce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.all {
		if p.mesh.cfg.Allow(l.peer) != nil {
			_ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodeUnauthorised), "not a member")
		}
	}
}

// close ends every connection with a goodbye; quic-go's transport would send the peers nothing.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for l := range p.all {
		_ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodeGoodbye), "stopping")
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := u.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
