// Package meshtest simulates a network with faults on request, for tests in virtual
// time. It is not a model of any real network: packets take a fixed time, plus delays
// that a test adds.
package meshtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"
)

// Latency is the delay of a packet unless a test adds to it.
const Latency = 200 * time.Microsecond

// mtu is Ethernet's, of which headers take some.
const (
	mtu     = 1500
	headers = 28 // of UDP and IPv4
)

// Network connects simulated sockets. Create it inside a synctest bubble. All its
// methods may be called at any time.
type Network struct {
	mu     sync.Mutex
	links  map[string]*simnet.SimulatedLink // by address
	down   map[way]bool                     // by IP
	slow   map[string]time.Duration         // by IP
	most   map[string]int                   // bytes of the largest packet that passes, by sender's IP; "": anybody's
	loss   float64
	jitter time.Duration
	random *rand.Rand
	refuse bool
	tap    func(packet []byte)
}

// way is one direction between two IPs.
type way struct{ from, to string }

// NewNetwork returns a network without faults. The seed decides which packets are lost
// once Lose is called.
func NewNetwork(seed uint64) *Network {
	// QUIC would ask a real socket for its buffers, and complain.
	_ = os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	return &Network{
		most: map[string]int{}, links: map[string]*simnet.SimulatedLink{}, down: map[way]bool{}, slow: map[string]time.Duration{},
		random: rand.New(rand.NewPCG(seed, 1)),
	}
}

// Socket is one endpoint. Closing it removes it from the network silently, as a crash
// does.
type Socket struct {
	*simnet.SimConn
	network *Network
	link    *simnet.SimulatedLink
	once    sync.Once
}

// Listen opens a socket at this IP and port.
func (n *Network) Listen(ip string, port int) *Socket {
	addr := &net.UDPAddr{IP: net.ParseIP(ip), Port: port}
	link := &simnet.SimulatedLink{
		UplinkSettings: simnet.LinkSettings{MTU: mtu - headers}, DownlinkSettings: simnet.LinkSettings{MTU: mtu - headers},
		LatencyFunc: n.latency, UploadPacket: router{n},
	}
	s := &Socket{SimConn: simnet.NewBlockingSimConn(addr, link), network: n, link: link}
	link.Start()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[addr.String()] = link
	return s
}

// Close removes the socket from the network.
func (s *Socket) Close() error {
	s.once.Do(func() {
		s.network.mu.Lock()
		if at := s.LocalAddr().String(); s.network.links[at] == s.link {
			delete(s.network.links, at)
		}
		s.network.mu.Unlock()
		_ = s.SimConn.Close()
		_ = s.link.Close()
	})
	return nil
}

// router forwards packets between the sockets.
type router struct{ n *Network }

func (r router) AddNode(net.Addr, simnet.PacketReceiver) {}

func (r router) SendPacket(p simnet.Packet) error {
	n := r.n
	n.mu.Lock()
	link := n.links[p.To.String()]
	if n.tap != nil {
		n.tap(p.Data)
	}
	lost := n.down[way{ip(p.From), ip(p.To)}] || n.large(p) || n.loss > 0 && n.random.Float64() < n.loss
	n.mu.Unlock()
	if link == nil || lost {
		return nil
	}
	link.RecvPacket(p)
	return nil
}

func (n *Network) latency(p simnet.Packet) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := Latency + n.slow[ip(p.From)] + n.slow[ip(p.To)]
	if n.jitter > 0 {
		d += time.Duration(n.random.Int64N(int64(n.jitter)))
	}
	return d
}

func ip(a net.Addr) string {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		panic(fmt.Sprintf("meshtest: %v is no UDP address", a))
	}
	return u.IP.String()
}

// Cut stops packets from one IP to another, in that direction only.
func (n *Network) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[way{from, to}] = true
}

// Partition cuts both ways between every IP of a and every IP of b.
func (n *Network) Partition(a, b []string) {
	for _, x := range a {
		for _, y := range b {
			n.Cut(x, y)
			n.Cut(y, x)
		}
	}
}

// Heal undoes every Cut, Partition and Shrink.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.down)
	clear(n.most)
}

// Lose drops this share of all packets, and lets packets overtake each other within the
// given time.
func (n *Network) Lose(share float64, jitter time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loss, n.jitter = share, jitter
}

// Shrink silently drops packets that a path with this MTU would not carry, from now on: those
// from these IPs, or all. Heal undoes it.
func (n *Network) Shrink(mtu int, from ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(from) == 0 {
		from = []string{""}
	}
	for _, ip := range from {
		n.most[ip] = mtu - headers
	}
}

// large reports whether a packet is too large for its path. It is called with mu held.
func (n *Network) large(p simnet.Packet) bool {
	for _, from := range []string{"", ip(p.From)} {
		if most, in := n.most[from]; in && len(p.Data) > most {
			return true
		}
	}
	return false
}

// Slow delays every packet to and from an IP.
func (n *Network) Slow(ip string, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[ip] = by
}

// Refuse makes the machines of sockets that were closed refuse packets, as those do whose process has
// ended. Otherwise packets vanish, as when machines do.
func (n *Network) Refuse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = true
}

// Refuses reports whether packets from the socket to an address are refused.
func (s *Socket) Refuses(to netip.AddrPort) bool {
	n, from, there := s.network, ip(s.LocalAddr()), to.Addr().String()
	n.mu.Lock()
	defer n.mu.Unlock()
	cut := n.down[way{from, there}] || n.down[way{there, from}]
	return n.refuse && n.links[to.String()] == nil && !cut
}

// Tap calls f with every packet that is sent, lost or not, one at a time.
func (n *Network) Tap(f func(packet []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tap = f
}
