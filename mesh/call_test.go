package mesh

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func echo(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil }

func TestCallAnswersRefusesAndTimesOut(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		a := g.meshes[0]
		b := g.open(nil)
		b.Handle("refuse", func(context.Context, string, []byte) ([]byte, error) { return nil, Refuse("taken", "it is taken") })
		b.Handle("fail", func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("broken") })
		b.Handle("who", func(_ context.Context, peer string, _ []byte) ([]byte, error) { return []byte(peer), nil })
		b.Handle("hang", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		b.Handle("echo", echo)
		b.Ready()
		g.wait("a knows b", func() bool { return len(alive(a)) == 2 })
		call := func(method string, body []byte) ([]byte, error) { return a.Call(t.Context(), b.ID(), method, body) }

		large := bytes.Repeat([]byte("x"), maxCallBody)
		for _, body := range [][]byte{nil, []byte("hello"), large} {
			got, err := call("echo", body)
			must(t, err)
			if !bytes.Equal(got, body) {
				t.Fatalf("sent %d bytes, got %d back", len(body), len(got))
			}
		}
		if _, err := call("echo", append(large, 'x')); err == nil {
			t.Fatal("a call over the limit went through")
		}
		if got, err := call("who", nil); err != nil || string(got) != a.ID() {
			t.Fatalf("the peer took the caller for %q, %v", got, err)
		}
		_, err := call("refuse", nil)
		if RefusalOf(err) != "taken" || !strings.Contains(err.Error(), "it is taken") {
			t.Fatalf("got %v", err)
		}
		if _, err := call("fail", nil); RefusalOf(err) != "failed" {
			t.Fatalf("got %v", err)
		}
		if _, err := call("no-such", nil); RefusalOf(err) != "unknown-call" {
			t.Fatalf("got %v", err)
		}
		begin := time.Now()
		if _, err := call("hang", nil); err == nil {
			t.Fatal("a call that hangs returned")
		}
		if took := time.Since(begin); took > callTimeout+time.Second {
			t.Fatalf("a call that hangs took %s", took)
		}
	})
}

func TestCallKeepsItsPeersApart(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a := g.meshes[0]
		if _, err := a.Call(t.Context(), "0123456789abcdef", "echo", nil); !errors.Is(err, ErrNoAddress) {
			t.Fatalf("called a node that does not exist: %v", err)
		}
		if _, err := a.Call(t.Context(), a.ID(), "echo", nil); !errors.Is(err, ErrSelf) {
			t.Fatalf("called itself: %v", err)
		}
	})
}

// Whoever answers at an address is not trusted to be who was known to be there.
func TestDialDemandsTheIDItAskedFor(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		stranger := "00000000000000aa"
		m := g.open(func(c *Config) {
			c.Peers = []Peer{{ID: stranger, Addr: g.meshes[1].cfg.Advertise}}
		})
		if _, err := m.Call(t.Context(), stranger, "echo", nil); err == nil {
			t.Fatal("the node at the stranger's address passed for the stranger")
		}
	})
}

func TestRefusedPeerLosesItsConnectionsAndGetsNoMore(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		told := make(chan string, 16)
		bad := g.open(func(c *Config) { c.OnRefused = func(peer string) { told <- peer } })
		bad.Handle("echo", echo)
		bad.Ready()
		a := g.meshes[0]
		g.wait("a knows it", func() bool { return len(alive(a)) == 2 })
		_, err := a.Call(t.Context(), bad.ID(), "echo", nil)
		must(t, err)
		g.refuse(bad.ID())
		if peer := <-told; peer != a.ID() {
			t.Fatalf("refused by %s", peer)
		}
		if _, err := bad.Call(t.Context(), a.ID(), "echo", nil); err == nil {
			t.Fatal("a refused node was served")
		}
		if _, err := a.Call(t.Context(), bad.ID(), "echo", nil); !errors.Is(err, ErrUnauthorised) {
			t.Fatalf("a refused node was called: %v", err)
		}
	})
}

// Both sides dial at the same instant, again and again: in the end each has one
// current connection, the same.
func TestCrossedDialsLeaveOneConnection(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		done := make(chan error, 2)
		go func() { _, err := a.Call(t.Context(), b.ID(), "echo", nil); done <- err }()
		go func() { _, err := b.Call(t.Context(), a.ID(), "echo", nil); done <- err }()
		must(t, errors.Join(<-done, <-done))
		g.wait("one connection a side", func() bool { return controlLinks(a) == 1 && controlLinks(b) == 1 })
	})
}

func controlLinks(m *Mesh) int {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	n := 0
	for l := range m.pool.all {
		if l.class == control && l.alive() {
			n++
		}
	}
	return n
}
