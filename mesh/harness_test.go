package mesh

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/mesh/meshtest"
)

// ground is a set of meshes with one CA, for one test.
type ground struct {
	t      testing.TB
	net    *meshtest.Network // nil: loopback
	first  *identity.Identity
	meshes []*Mesh

	mu      sync.Mutex
	refused map[string]bool // whom every mesh refuses
}

// virtual runs f with n meshes that know each other, in virtual time.
func virtual(t *testing.T, n int, f func(t *testing.T, g *ground)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// memberlist's probes outlive its shutdown by their timeout, and the bubble
		// must not end before them. Cleanups run last in, first out.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		g := newGround(t, meshtest.NewNetwork(1))
		g.grow(n)
		f(t, g)
	})
}

func newGround(t testing.TB, network *meshtest.Network) *ground {
	t.Helper()
	first, err := identity.Found(filepath.Join(t.TempDir(), "identity"), "n0", identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &ground{t: t, net: network, first: first, refused: map[string]bool{}}
}

// admit makes the identity of one more node.
func (g *ground) admit(name string) *identity.Identity {
	g.t.Helper()
	req, err := identity.NewRequest(filepath.Join(g.t.TempDir(), "identity"), name)
	if err != nil {
		g.t.Fatal(err)
	}
	chain, err := g.first.Sign(req.CSR(), req.ID(), time.Now())
	if err != nil {
		g.t.Fatal(err)
	}
	id, err := req.Accept(identity.Grant{MeshID: g.first.MeshID(), Chain: chain, Keys: g.first.GossipKeys()}, g.first.CAHash())
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

func (g *ground) allow(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[id] {
		return ErrUnauthorised
	}
	return nil
}

func (g *ground) refuse(id string) {
	g.mu.Lock()
	g.refused[id] = true
	g.mu.Unlock()
	for _, m := range g.meshes {
		m.Enforce()
	}
}

func (g *ground) socket(k int) net.PacketConn {
	if g.net != nil {
		return g.net.Listen(fmt.Sprintf("10.0.0.%d", k+1), 7946)
	}
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// open starts a mesh that knows those before it. set may change its
// configuration, and registers handlers through the returned mesh.
func (g *ground) open(set func(*Config)) *Mesh {
	g.t.Helper()
	k := len(g.meshes)
	id := g.first
	if k > 0 {
		id = g.admit(fmt.Sprintf("n%d", k))
	}
	conn := g.socket(k)
	cfg := Config{
		Conn: conn, Identity: id, Advertise: addrPort(conn.LocalAddr()), Name: id.Name(), Version: "test",
		Allow: g.allow, Log: slog.New(slog.DiscardHandler),
	}
	for _, m := range g.meshes {
		cfg.Peers = append(cfg.Peers, Peer{m.ID(), m.cfg.Advertise})
	}
	if set != nil {
		set(&cfg)
	}
	m, err := Open(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.meshes = append(g.meshes, m)
	g.t.Cleanup(func() {
		_ = m.Close()
		_ = conn.Close()
	})
	return m
}

// grow opens n meshes that echo calls named "echo", and waits until gossip has
// made them known to each other.
func (g *ground) grow(n int) {
	g.t.Helper()
	for range n {
		m := g.open(nil)
		m.Handle("echo", echo)
		m.Ready()
	}
	g.wait("all see all", func() bool {
		for _, m := range g.meshes {
			if len(alive(m)) != len(g.meshes) {
				return false
			}
		}
		return true
	})
}

func alive(m *Mesh) []Member {
	var list []Member
	for _, p := range m.Members() {
		if p.Status == Alive {
			list = append(list, p)
		}
	}
	return list
}

func (g *ground) wait(what string, holds func() bool) {
	g.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !holds(); <-tick.C {
		if time.Since(begin) > time.Minute {
			g.t.Fatalf("not within a minute: %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func udp(a netip.AddrPort) net.Addr { return net.UDPAddrFromAddrPort(a) }
