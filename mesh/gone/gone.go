// Package gone finds out that a node's process has ended without a word, as by kill -9, sooner than
// gossip can. It takes two witnesses: the node answers nothing on its connections, and its machine
// refuses packets to its port. While a process lives, its port refuses nothing, however busy or stopped
// the process is. Routers and firewalls may refuse what they let nobody send: where they did while the
// node was heard, refusals say nothing. A machine that has lost its power refuses nothing: gossip finds
// that out.
package gone

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// look is how often connections are looked at, and patience how long a node may leave what it was
	// sent unanswered until its port is tried.
	look     = 200 * time.Millisecond
	patience = 400 * time.Millisecond
	// doubt is how long a node whose port refuses packets has to answer all the same. Anybody between
	// here and there can forge a refusal, and nobody an answer. What the refusal took counts, but for
	// leastDoubt.
	doubt      = 750 * time.Millisecond
	leastDoubt = 400 * time.Millisecond
	// wait is how long a refusal may take, and firstWait the same while the node is well. Linux grants
	// a host six refusals at once, and then one a second, to whichever packet comes next. What was on
	// its way to the node and what is sent again use them up: so a packet is sent each pause.
	wait, firstWait = time.Second, 200 * time.Millisecond
	pause           = 20 * time.Millisecond
	// firsts is how many ports of nodes that are well are tried per look.
	firsts = 4
)

// Link is a connection to a node.
type Link struct {
	Key  any // tells connections apart
	Peer string
	Addr netip.AddrPort
	// Counts returns how many packets were sent, and how many that the node has proven to be its own
	// were received.
	Counts func() (sent, received uint64)
	// Ask asks the node for an answer, which closes the channel.
	Ask func(ctx context.Context) <-chan struct{}
	// Done is closed when the connection has ended.
	Done <-chan struct{}
	// Close ends the connection, so that nobody waits for it any more. Ended is called once those to the
	// process at this address are closed, since it has ended. Another may have taken its place by then.
	Close, Ended func()
}

// Watch looks at connections until ctx ends. conn is the socket that they use.
func Watch(ctx context.Context, conn net.PacketConn, links func() []Link) {
	w := watcher{refuses: knocker(conn), links: links, seen: map[any]*packets{}, trying: map[string]bool{}, ports: map[netip.AddrPort]*port{}}
	if w.refuses == nil {
		return
	}
	defer w.tries.Wait()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// watcher is the state of Watch.
type watcher struct {
	refuses func(ctx context.Context, to netip.AddrPort, within time.Duration) bool
	links   func() []Link
	seen    map[any]*packets
	tries   sync.WaitGroup

	mu     sync.Mutex
	trying map[string]bool // nodes whose ports are being tried
	ports  map[netip.AddrPort]*port
}

// port is what is known of an address.
type port struct {
	tried bool
	// key is the connection for which it last refused a packet, and received what had come on it then.
	key      any
	received uint64
	// lies means that it refuses packets while its node lives, as one behind a router or a firewall may.
	lies bool
}

func (w *watcher) look(ctx context.Context) {
	before, links, left := w.seen, w.links(), firsts
	w.seen = map[any]*packets{}
	w.know(links)
	for _, l := range links {
		sent, received := l.Counts()
		p := before[l.Key]
		if p == nil {
			p = &packets{sent: sent, received: received}
		}
		w.seen[l.Key] = p
		if received != p.received && left > 0 && w.untried(l) && w.begin(l.Peer) {
			left--
			w.tries.Go(func() {
				defer w.end(l.Peer)
				w.refused(ctx, l, firstWait)
			})
		}
		if p.unanswered(sent, received, time.Now()) && w.begin(l.Peer) {
			w.tries.Go(func() {
				defer w.end(l.Peer)
				w.try(ctx, l)
			})
		}
	}
}

// know forgets the addresses without connections, and notes which refuse packets while their nodes live.
func (w *watcher) know(links []Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.ports
	w.ports = map[netip.AddrPort]*port{}
	for _, l := range links {
		p := before[l.Addr]
		if p == nil {
			p = new(port)
		}
		w.ports[l.Addr], before[l.Addr] = p, p
		if _, received := l.Counts(); l.Key == p.key && received > p.received {
			p.lies = true
		}
	}
}

func (w *watcher) untried(l Link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ports[l.Addr].tried
}

// refused reports whether the port of a node refuses a packet within a time, and has never done so while
// the node lived.
func (w *watcher) refused(ctx context.Context, l Link, within time.Duration) bool {
	refuses := w.refuses(ctx, l.Addr, within)
	_, received := l.Counts()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.ports[l.Addr]
	if p == nil {
		return false // all connections to it have ended meanwhile
	}
	p.tried = true
	if refuses {
		p.key, p.received = l.Key, received
	}
	return refuses && !p.lies
}

// begin reports whether no port of a node is being tried yet. end must follow.
func (w *watcher) begin(peer string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trying[peer] {
		return false
	}
	w.trying[peer] = true
	return true
}

func (w *watcher) end(peer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.trying, peer)
}

// try ends all connections to the process at the other end of one, if that has ended.
func (w *watcher) try(ctx context.Context, l Link) {
	before, began := map[any]uint64{}, time.Now()
	for _, other := range w.to(l) {
		before[other.Key] = other.received
	}
	if !w.refused(ctx, l, wait) || !silent(ctx, l, max(leastDoubt, doubt-time.Since(began))) {
		return
	}
	now := w.to(l)
	for _, other := range now {
		if first, old := before[other.Key]; old && other.received != first {
			return // it lives, whatever became of this connection
		}
	}
	for _, other := range now {
		if _, old := before[other.Key]; old { // else it is one to a process that has taken the place
			other.Close()
		}
	}
	l.Ended()
}

// heard is a connection, and what was received on it.
type heard struct {
	Link
	received uint64
}

// to returns the connections to the address of one.
func (w *watcher) to(l Link) (list []heard) {
	for _, other := range w.links() {
		if other.Peer == l.Peer && other.Addr == l.Addr {
			_, received := other.Counts()
			list = append(list, heard{other, received})
		}
	}
	return list
}

// silent reports whether a node leaves a question unanswered for so long on a connection that goes on.
func silent(ctx context.Context, l Link, doubt time.Duration) bool {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(doubt)
	defer timer.Stop()
	select {
	case <-l.Ask(asking):
		return false
	case <-l.Done: // perhaps since another process has taken its place
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// packets is what a connection has counted.
type packets struct {
	sent, received uint64
	since          time.Time // when more was first seen to have been sent; zero: it was not
}

// unanswered reports whether the node has left what it was sent unanswered for too long. It does so
// again only if more is sent.
func (p *packets) unanswered(sent, received uint64, now time.Time) bool {
	switch {
	case received != p.received:
		*p = packets{sent: sent, received: received}
	case sent == p.sent:
	case p.since.IsZero():
		p.since = now
	case now.Sub(p.since) >= patience:
		p.sent, p.since = sent, time.Time{}
		return true
	}
	return false
}

// A Refuser is a socket that knows which addresses refuse packets.
type Refuser interface {
	Refuses(to netip.AddrPort) bool
}

// knocker returns how to find out whether an address refuses packets; nil: there is no way.
func knocker(conn net.PacketConn) func(ctx context.Context, to netip.AddrPort, within time.Duration) bool {
	switch c := conn.(type) {
	case Refuser:
		return func(_ context.Context, to netip.AddrPort, _ time.Duration) bool { return c.Refuses(to) }
	case *net.UDPConn:
		return knock
	}
	return nil
}

// knock reports whether an address refuses a packet, as machines do where no process listens. It sends
// bytes that every node ignores, from a socket of its own: that of the mesh has no peer, and so the
// kernel does not say which of its packets are refused.
func knock(ctx context.Context, to netip.AddrPort, within time.Duration) bool {
	c, err := new(net.Dialer).DialContext(ctx, "udp", to.String())
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	for begin := time.Now(); time.Since(begin) < within; {
		_ = c.SetReadDeadline(time.Now().Add(pause))
		if _, err = c.Write([]byte{0}); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
