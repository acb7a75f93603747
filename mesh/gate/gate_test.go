package gate

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

func TestHostsAreAddressesOrNetworks(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.7:1": "10.0.0.7/32", "[::ffff:10.0.0.7]:2": "10.0.0.7/32",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		if got := HostOf(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr))).String(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// Packets with a forged source make that host prove its address, and no more: who has proven it
// is served.
func TestForgedSourcesCountAgainstNobody(t *testing.T) {
	g, victim := New(), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.7:7946"))
	if g.MustProve(victim) {
		t.Fatal("the first packet of a host must prove its address")
	}
	for range 10_000 {
		g.MustProve(victim)
	}
	if !g.MustProve(victim) {
		t.Error("a flood need not prove its address")
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 20 {
		_, err := g.Begin(ctx, &quic.ClientInfo{RemoteAddr: victim, AddrVerified: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 10_000 {
		_, _ = g.Begin(ctx, &quic.ClientInfo{RemoteAddr: victim, AddrVerified: true})
	}
	if g.all != maxPendingPerHost {
		t.Errorf("%d handshakes of one host are pending", g.all)
	}
	cancel()
	deadline := time.After(10 * time.Second)
	for pending := -1; pending != 0; {
		g.mu.Lock()
		pending = g.all + len(g.pending)
		g.mu.Unlock()
		select {
		case <-deadline:
			t.Fatalf("%d handshakes are pending after all have ended", pending)
		case <-time.After(time.Millisecond):
		}
	}
}
