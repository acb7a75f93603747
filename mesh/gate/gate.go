// Package gate decides whose handshakes a node computes, before it computes any.
package gate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh/pace"
	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// Gate decides for one socket. What one host may
// take is counted before what all may take together, so that a host that floods this node
// keeps nobody else out.
//
// The source of a UDP packet can be forged. So a host that has not proven its address gets
// little: beyond that, QUIC makes it repeat its first packet with a token that was sent there
// (Retry). Only what comes back with a token counts against the host itself.
type Gate struct {
	unproven *pace.Hosts
	together *rate.Limiter // of all unproven hosts
	proven   *pace.Hosts

	mu      sync.Mutex
	all     int
	pending map[netip.Prefix]int // handshakes that have not ended, by host
}

const (
	// unprovenRate and provenRate are handshakes a second that a host may begin. Many nodes
	// may run on one host or behind one address, and each dials twice.
	unprovenRate, unprovenBurst = 8, 16
	provenRate, provenBurst     = 50, 200
	// maxPending bounds the handshakes that have not ended: each holds some 50 kB for up to
	// twice handshakeTimeout.
	maxPending, maxPendingPerHost = 1024, 128
)

// MaxHosts bounds how many hosts are distinguished.
const MaxHosts = 4096

// New makes a Gate that has seen nobody.
func New() *Gate {
	return &Gate{
		unproven: pace.New(unprovenRate, unprovenBurst, MaxHosts), together: rate.NewLimiter(100, 200),
		proven: pace.New(provenRate, provenBurst, MaxHosts), pending: map[netip.Prefix]int{},
	}
}

// MustProve reports whether a host must prove its address first. It is the transport's
// VerifySourceAddress.
func (g *Gate) MustProve(from net.Addr) bool {
	return !g.unproven.Take(HostOf(from), time.Now()) || !g.together.Allow()
}

var errTooMany = errors.New("too many handshakes")

// handshake is one that counts as pending until it ends.
type handshake struct {
	gate *Gate
	host netip.Prefix
	once sync.Once
}

func (h *handshake) end() {
	h.once.Do(func() {
		h.gate.mu.Lock()
		defer h.gate.mu.Unlock()
		h.gate.all--
		if h.gate.pending[h.host]--; h.gate.pending[h.host] == 0 {
			delete(h.gate.pending, h.host)
		}
	})
}

type handshakeKey struct{}

// Begin refuses a handshake, or counts it until Passed is called or its connection ends. It is
// the transport's ConnContext.
func (g *Gate) Begin(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	host := HostOf(info.RemoteAddr)
	if info.AddrVerified && !g.proven.Take(host, time.Now()) {
		return nil, errTooMany
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending[host] >= maxPendingPerHost || g.all >= maxPending {
		return nil, errTooMany
	}
	g.pending[host]++
	g.all++
	h := &handshake{gate: g, host: host}
	context.AfterFunc(ctx, h.end)
	return context.WithValue(ctx, handshakeKey{}, h), nil
}

// Passed ends the count of a connection's handshake.
func (g *Gate) Passed(conn *quic.Conn) {
	if h, ok := conn.Context().Value(handshakeKey{}).(*handshake); ok {
		h.end()
	}
}

// HostOf returns what counts as one host: an IPv4 address, or an IPv6 network of 64 bits,
// since a machine has all addresses of that.
func HostOf(a net.Addr) netip.Prefix {
	var ip netip.Addr
	if u, ok := a.(*net.UDPAddr); ok {
		ip = u.AddrPort().Addr().Unmap()
	}
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	host, _ := ip.WithZone("").Prefix(bits)
	return host
}
