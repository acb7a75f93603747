package mesh

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// silence begins that many handshakes a second with the victim, from one socket, and says
// nothing on the connections that come about. It ends with ctx, or after the given time.
func silence(ctx context.Context, socket net.PacketConn, victim *Mesh, perSecond int, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	tr := &quic.Transport{Conn: socket}
	defer tr.Close()
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		go func() {
			_, _ = tr.Dial(ctx, net.UDPAddrFromAddrPort(victim.cfg.Advertise), identity.ProbeTLS(), &quic.Config{})
		}()
	}
}

// enter joins as a node does that tries again and again, and returns how long that took.
func enter(t *testing.T, socket net.PacketConn, m *Mesh, token identity.Token) time.Duration {
	begin := time.Now()
	for {
		_, err := Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("an honest newcomer was kept out for 10 s: %v", err)
		}
		<-time.After(500 * time.Millisecond)
	}
}

func admitAll(context.Context, JoinRequest) (identity.Grant, error) {
	return identity.Grant{MeshID: "x"}, nil
}

// A thousand silent handshakes a second from one host keep nobody else out.
func TestFloodOfHandshakesKeepsNobodyOut(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		m := g.desk(admitAll)
		token, err := identity.NewToken(g.first.CAHash())
		must(t, err)
		hostile, honest := g.socket(66), g.socket(9)
		defer hostile.Close()
		defer honest.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			silence(ctx, hostile, m, 1000, time.Minute)
		}()
		<-time.After(500 * time.Millisecond)
		took := enter(t, honest, m, token)
		cancel()
		<-ended
		if took > 2*time.Second {
			t.Errorf("an honest newcomer waited for %s", took)
		}
		t.Logf("joined within %s", took)
	})
}
