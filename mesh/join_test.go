package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// desk opens a mesh that admits by this function.
func (g *ground) desk(admit func(context.Context, JoinRequest) (identity.Grant, error)) *Mesh {
	m := g.open(func(c *Config) { c.Admit = admit })
	m.Ready()
	return m
}

func TestJoin(t *testing.T) {
	later := Refuse(RefusedLater, "not now")
	no := Refuse(RefusedToken, "the token has expired")
	for name, c := range map[string]struct {
		admit  func(g *ground, r JoinRequest) (identity.Grant, error)
		reason string // "" : admitted
	}{
		"admitted": {admit: func(g *ground, r JoinRequest) (identity.Grant, error) {
			return identity.Grant{MeshID: g.first.MeshID()}, nil
		}},
		"refused": {func(*ground, JoinRequest) (identity.Grant, error) { return identity.Grant{}, no }, RefusedToken},
		"later":   {func(*ground, JoinRequest) (identity.Grant, error) { return identity.Grant{}, later }, RefusedLater},
		"trouble": {func(*ground, JoinRequest) (identity.Grant, error) {
			return identity.Grant{}, errors.New("disk on fire")
		}, RefusedLater},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 0, func(t *testing.T, g *ground) {
				token, err := identity.NewToken(g.first.CAHash())
				must(t, err)
				var got JoinRequest
				m := g.desk(func(_ context.Context, r JoinRequest) (identity.Grant, error) {
					got = r
					return c.admit(g, r)
				})
				socket := g.socket(9)
				defer socket.Close()
				grant, err := Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new", ID: "ff"})
				if RefusalOf(err) != c.reason || (c.reason == "") != (err == nil) {
					t.Fatalf("got %v", err)
				}
				if got.Secret != fmt.Sprintf("%x", token.Secret) || got.Name != "new" {
					t.Fatalf("the desk saw %+v", got)
				}
				if err == nil && grant.MeshID != g.first.MeshID() {
					t.Fatalf("granted %+v", grant)
				}
				if err != nil && strings.Contains(err.Error(), "fire") {
					t.Errorf("a newcomer was told of inner trouble: %v", err)
				}
			})
		})
	}
}

func TestJoinTriesEveryPeer(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		m := g.desk(func(context.Context, JoinRequest) (identity.Grant, error) { return identity.Grant{MeshID: "x"}, nil })
		token, err := identity.NewToken(g.first.CAHash())
		must(t, err)
		socket := g.socket(9)
		defer socket.Close()
		_, err = Join(t.Context(), socket, []string{"10.0.0.77:7946", m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
		must(t, err)
		_, err = Join(t.Context(), socket, []string{"10.0.0.77:7946"}, token, JoinRequest{Name: "new"})
		if err == nil || RefusalOf(err) != "" || !strings.Contains(err.Error(), "10.0.0.77:7946") {
			t.Fatalf("a peer that is not there gave %v", err)
		}
	})
}

func TestJoinPinsTheMesh(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		asked := false
		m := g.desk(func(context.Context, JoinRequest) (identity.Grant, error) {
			asked = true
			return identity.Grant{}, nil
		})
		other, err := identity.Found(filepath.Join(t.TempDir(), "x"), "x", identity.Options{})
		must(t, err)
		token, err := identity.NewToken(other.CAHash())
		must(t, err)
		socket := g.socket(9)
		defer socket.Close()
		_, err = Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
		wantError(t, err, identity.ErrForeignMesh)
		if asked {
			t.Fatal("the secret was shown to a foreign mesh")
		}
		// A node that is behind its mesh by one CA keeps nobody out.
		if token, err = identity.NewToken(g.first.CAHash()); err != nil {
			t.Fatal(err)
		}
		behind := newGround(t, g.net)
		behind.meshes = []*Mesh{m} // so that it has another address
		foreign := behind.desk(nil)
		_, err = Join(t.Context(), socket, []string{foreign.cfg.Advertise.String(), m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
		if err != nil || !asked {
			t.Errorf("with one of another CA before: %v", err)
		}
	})
}

// A newcomer's connection reaches the desk and nothing else, and one that stays
// silent is put out.
func TestDeskConnections(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		victim := g.meshes[0]
		socket := g.socket(9)
		tr := &quic.Transport{Conn: socket}
		defer socket.Close()
		defer tr.Close()
		dial := func() *quic.Conn {
			c, err := tr.Dial(t.Context(), net.UDPAddrFromAddrPort(victim.cfg.Advertise), identity.ProbeTLS(), &quic.Config{KeepAlivePeriod: time.Second})
			must(t, err)
			return c
		}
		calls := dial()
		s, err := calls.OpenStreamSync(t.Context())
		must(t, err)
		_, err = s.Write([]byte{streamCall, 4, 'e', 'c', 'h', 'o', 0, 0, 0, 0})
		must(t, err)
		must(t, s.Close())
		b := make([]byte, 512)
		n, _ := s.Read(b)
		if !strings.Contains(string(b[:n]), RefusedRequest) {
			t.Fatalf("a call at the desk got %q", b[:n])
		}
		silent := dial()
		select {
		case <-silent.Context().Done():
		case <-time.After(2 * deskTimeout):
			t.Fatal("a silent newcomer was not put out")
		}
		for range 100 {
			dial()
		}
		victim.joins.mu.Lock()
		held := len(victim.joins.conns)
		victim.joins.mu.Unlock()
		if held > seatsPerHost {
			t.Errorf("one host holds %d seats", held)
		}
		g.stillServes(victim)
	})
}

func TestProbe(t *testing.T) {
	g := newGround(t, nil)
	m := g.open(nil)
	m.Ready()
	socket := g.socket(0)
	defer socket.Close()
	r, err := Probe(t.Context(), socket, m.cfg.Advertise.String())
	must(t, err)
	if r.MeshID != g.first.MeshID() || r.Version != "test" || r.Observed != socket.LocalAddr().String() || !r.Inbound || r.Reach != (Reach{Passed: MostPacket}) || r.Skew.Abs() > time.Minute {
		t.Fatalf("got %+v", r)
	}
}

// Nothing is left running after Close, whatever was under way.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		g := newGround(t, nil)
		g.grow(2)
		a, b := g.meshes[0], g.meshes[1]
		_, err := a.Call(t.Context(), b.ID(), "echo", nil)
		must(t, err)
		_, err = a.Raft().Dial(b.ID(), time.Second)
		must(t, err)
		begin := time.Now()
		for _, m := range g.meshes {
			must(t, m.Close())
			must(t, m.Close()) // twice is as good as once
			_ = m.cfg.Conn.Close()
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("closing took %s", took)
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 250 {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-tick.C
	}
	b := make([]byte, 1<<16)
	t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), b[:runtime.Stack(b, true)])
}
