//go:build long

package mesh

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

// Real sockets and clocks: a host that begins a thousand silent handshakes a second for ten
// seconds delays no newcomer from another host by more than two.
func TestFloodOfHandshakesOverLoopback(t *testing.T) {
	g := newGround(t, nil)
	m := g.desk(admitAll)
	token, err := identity.NewToken(g.first.CAHash())
	must(t, err)
	at := func(ip string) net.PacketConn {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		silence(ctx, at("127.0.0.2"), m, 1000, time.Minute)
	}()
	honest := at("127.0.0.3")
	worst := time.Duration(0)
	for begin := time.Now(); time.Since(begin) < 10*time.Second; <-time.After(time.Second) {
		took := enter(t, honest, m, token)
		t.Logf("joined within %s", took)
		worst = max(worst, took)
	}
	cancel()
	<-ended
	if worst > 2*time.Second {
		t.Errorf("an honest newcomer waited for %s", worst)
	}
	t.Logf("the slowest joined within %s", worst)
}
