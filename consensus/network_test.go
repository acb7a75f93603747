package consensus

import (
	"errors"
	"net"
	"sync"
	"time"
)

// network is a Layer for each of several nodes, all within memory, that cuts
// links on request. Streams are synchronous pipes, so that virtual time works.
type network struct {
	mu    sync.Mutex
	ports map[string]*port
	cut   map[[2]string]bool
}

func newNetwork() *network {
	return &network{ports: map[string]*port{}, cut: map[[2]string]bool{}}
}

// link is a pair of ids in either order.
func link(a, b string) [2]string {
	if b < a {
		a, b = b, a
	}
	return [2]string{a, b}
}

// listen gives a node its Layer, and forgets the one it had before.
func (n *network) listen(id string) *port {
	p := &port{net: n, id: id, accept: make(chan net.Conn), closed: make(chan struct{}), conns: map[net.Conn]string{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[id] = p
	return p
}

// sever cuts or heals the links between a and b. What is open breaks.
func (n *network) sever(a, b string, cut bool) {
	n.mu.Lock()
	n.cut[link(a, b)] = cut
	var broken []net.Conn
	for _, p := range []*port{n.ports[a], n.ports[b]} {
		if p == nil || !cut {
			continue
		}
		for c, peer := range p.conns {
			if peer == a || peer == b {
				broken = append(broken, c)
			}
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		_ = c.Close()
	}
}

func (n *network) severed(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[link(a, b)]
}

type port struct {
	net    *network
	id     string
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
	conns  map[net.Conn]string // to which peer; under net.mu
}

var _ Layer = (*port)(nil)

var errUnreachable = errors.New("nobody answers")

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Dial to a node that is cut off or gone takes its whole time, as in real life.
func (p *port) Dial(id string, timeout time.Duration) (net.Conn, error) {
	p.net.mu.Lock()
	to, severed := p.net.ports[id], p.net.cut[link(p.id, id)]
	p.net.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	if to == nil || severed {
		select {
		case <-timer.C:
		case <-p.closed:
		}
		return nil, errUnreachable
	}
	near, far := net.Pipe()
	select {
	case to.accept <- to.track(far, p.id):
		return p.track(near, id), nil
	case <-to.closed:
	case <-p.closed:
	case <-timer.C:
	}
	return nil, errUnreachable
}

func (p *port) track(c net.Conn, peer string) net.Conn {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.conns[c] = peer
	return c
}

func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *port) Addr() net.Addr { return name(p.id) }

type name string

func (name) Network() string  { return "memory" }
func (n name) String() string { return string(n) }
