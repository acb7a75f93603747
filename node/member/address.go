package member

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

// advertised returns the address that others dial: the configured one, else the one
// that the socket is bound to, else, for a wildcard, the one that routes to the first
// peer or off this machine.
func advertised(want string, conn net.PacketConn, peers []mesh.Peer) (netip.AddrPort, error) {
	if want != "" {
		return netip.ParseAddrPort(want)
	}
	udp, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("the socket's address %s is no UDP address", conn.LocalAddr())
	}
	bound := udp.AddrPort()
	if a := bound.Addr().Unmap(); !a.IsUnspecified() {
		return netip.AddrPortFrom(a, bound.Port()), nil
	}
	if len(peers) > 0 {
		a, err := mesh.RoutedAddr(peers[0].Addr)
		if err == nil && !a.IsUnspecified() {
			return netip.AddrPortFrom(a.Unmap(), bound.Port()), nil
		}
	}
	return netip.AddrPortFrom(firstAddr(), bound.Port()), nil
}

// firstAddr returns the first address of this machine that is neither loopback nor
// link-local, IPv4 before IPv6; loopback if there is none.
func firstAddr() netip.Addr {
	best := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return best
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr()
		}
		if best.IsLoopback() {
			best = p.Addr()
		}
	}
	return best
}

// seedsOf resolves the peers of --join. A node that was a member before needs none, but
// they help one whose known peers have all moved.
func seedsOf(join []string, log *slog.Logger) []netip.AddrPort {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var seeds []netip.AddrPort
	for _, peer := range join {
		a, err := mesh.Resolve(ctx, peer)
		if err != nil {
			log.Warn("can't resolve a peer", "peer", peer, "err", err)
			continue
		}
		seeds = append(seeds, a)
	}
	return seeds
}
