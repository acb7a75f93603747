package mesh

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// speaks makes a mesh speak these versions on the wire.
func speaks(version string, low, high int) func(*Config) {
	return func(c *Config) { c.Version, c.Numbers.Wire = version, span(low, high) }
}

func names(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, s := range all {
		if !strings.Contains(text, s) {
			t.Errorf("%q does not say %q", text, s)
		}
	}
}

// Nodes of two versions work together if they have one of the wire in common.
func TestNeighbouringVersionsWorkTogether(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		for _, set := range []func(*Config){speaks("v1", 1, 1), speaks("v2", 1, 2), speaks("v2b", 1, 2)} {
			m := g.open(set)
			m.Handle("echo", echo)
			m.Ready()
		}
		g.wait("all see all", func() bool {
			for _, m := range g.meshes {
				if len(alive(m)) != 3 {
					return false
				}
			}
			return true
		})
		for _, a := range g.meshes {
			for _, b := range g.meshes {
				if a == b {
					continue
				}
				_, err := a.Call(t.Context(), b.ID(), "echo", []byte("hi"))
				must(t, err)
				if why := a.Unlike(b.ID()); why != "" {
					t.Errorf("%s of %s: %s", a.cfg.Version, b.cfg.Version, why)
				}
			}
		}
	})
}

// A member that comes back with a version that the others do not speak is told so, and they know.
func TestMemberOfAnotherVersion(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		a := g.open(speaks("v1", 1, 1))
		a.Ready()
		b := g.open(speaks("v2", 2, 3))
		b.Ready()
		g.wait("both know", func() bool { return a.Unlike(b.ID()) != "" && b.Unlike(a.ID()) != "" })
		names(t, b.Unlike(a.ID()), "runs hopmesh v1, which speaks 1 ", "v2, which speaks 2-3", "install the same version")
		names(t, a.Unlike(b.ID()), "speaks 3 on the wire", "v1, which speaks 1:")
		_, err := b.Call(t.Context(), a.ID(), "echo", nil)
		if other, ok := errors.AsType[*VersionError](err); !ok || other.Version != "v1" {
			t.Errorf("a call ended with %v", err)
		}
		_, err = b.Raft().Dial(a.ID(), time.Second)
		t.Log(err)
		// Back with its former version, all is well at once.
		must(t, b.Close())
		_ = b.cfg.Conn.Close()
		cfg := b.cfg
		cfg.Conn, cfg.Version, cfg.Numbers = g.net.Listen("10.0.0.2", 7946), "v1", Numbers{}
		again, err := Open(cfg)
		must(t, err)
		defer again.Close()
		defer cfg.Conn.Close()
		again.Ready()
		g.wait("they speak again", func() bool { return a.Unlike(b.ID()) == "" && statusAt(again, a.ID()) == Alive })
	})
}

// A newcomer of another version is refused, for good, in words that name both.
func TestNewcomerOfAnotherVersion(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		m := g.open(func(c *Config) {
			c.Version, c.Admit = "v1", admitAll
		})
		m.Ready()
		token, err := identity.NewToken(g.first.CAHash())
		must(t, err)
		socket := g.socket(9)
		defer socket.Close()
		at := []string{m.cfg.Advertise.String()}
		newcomer := JoinRequest{Name: "new", Version: "v2", Numbers: Numbers{Wire: span(2, 2)}}
		_, err = Join(t.Context(), socket, at, token, newcomer)
		if RefusalOf(err) != RefusedVersion {
			t.Fatalf("got %v", err)
		}
		names(t, err.Error(), "v1", "speaks 1 ", "v2", "speaks 2:", at[0])
		// Not for good if another may yet admit it.
		_, err = Join(t.Context(), socket, append(at, "10.0.0.77:7946"), token, newcomer)
		if RefusalOf(err) != "" {
			t.Errorf("got %v", err)
		}
		newcomer.Numbers.Wire = span(1, 2)
		_, err = Join(t.Context(), socket, at, token, newcomer)
		must(t, err)
	})
}

// So is one that speaks another protocol even of joining, and one that meets a node from before
// there were numbers.
func TestNewcomerOfAnotherProtocol(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		m := g.open(speaks("v1", 1, 1))
		m.Ready()
		socket := g.socket(9)
		defer socket.Close()
		foreign := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"hopmesh-join/7"}}
		_, err := ask(t.Context(), socket, m.cfg.Advertise.String(), foreign, deskRequest{Probe: &probeRequest{}})
		if other, ok := errors.AsType[*VersionError](err); !ok || *other != (VersionError{"v1", span(1, 1)}) {
			t.Errorf("it was told %v", err)
		}
		old := g.socket(10)
		defer old.Close()
		certificate := m.cfg.Identity.ServerTLS(anyone)
		certificate.GetConfigForClient = nil
		certificate.NextProtos = []string{"hopmesh-join/0"}
		certificate.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := m.cfg.Identity.ServerTLS(anyone).GetConfigForClient(h)
			if err != nil {
				return nil, err
			}
			return c.GetCertificate(h)
		}
		tr := &quic.Transport{Conn: old}
		defer tr.Close()
		l, err := tr.Listen(certificate, &quic.Config{})
		must(t, err)
		defer l.Close()
		token, err := identity.NewToken(g.first.CAHash())
		must(t, err)
		_, err = Join(t.Context(), socket, []string{addrPort(old.LocalAddr()).String()}, token, JoinRequest{Name: "new", Version: "v2"})
		if RefusalOf(err) != RefusedVersion {
			t.Errorf("a node of an unknown version gave %v", err)
		}
		names(t, err.Error(), "none of this one's protocols", "v2")
	})
}

func FuzzReason(f *testing.F) {
	f.Add(reasonVersion("v0.3.1", span(1, 2)))
	f.Add("hopmesh \x1b[31m wire 1")
	f.Add("not a member")
	f.Fuzz(func(t *testing.T, s string) {
		what := parseReason(s)
		if what.Wire != (Range{}) && (reasonVersion(what.Version, what.Wire) != s && "hopmesh "+s != reasonVersion(what.Version, what.Wire) || !plainVersion(what.Version)) {
			t.Fatalf("%q was read as %+v", s, what)
		}
	})
}

func span(low, high int) Range { return Range{Min: low, Max: high} }
