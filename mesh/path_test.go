package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

// With the least MTU of IPv6 in the middle of the path, a newcomer joins, members find each other
// and move data.
func TestSmallPackets(t *testing.T) {
	for _, mtu := range []int{1280, LeastPacket + 28} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			virtual(t, 0, func(t *testing.T, g *ground) {
				g.net.Shrink(mtu)
				m := g.desk(admitAll)
				m.HandleBulk(Feature, rows)
				token, err := identity.NewToken(g.first.CAHash())
				must(t, err)
				socket := g.socket(9)
				defer socket.Close()
				_, err = Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
				must(t, err)
				g.grow(4)
				_, err = g.meshes[1].Fetch(t.Context(), m.ID(), Question{Header: Header{Kind: Feature, Count: 1000}, Body: make([]byte, 4000), Limit: 64_000})
				must(t, err)
			})
		})
	}
}

// Below what QUIC needs, the error says so.
func TestErrorsNameTheMTU(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		m := g.desk(admitAll)
		token, err := identity.NewToken(g.first.CAHash())
		must(t, err)
		socket := g.socket(9)
		defer socket.Close()
		for mtu, named := range map[int]bool{1100: true, 60: false} { // 60: nothing passes, so nothing is known
			g.net.Shrink(mtu)
			_, err = Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
			if err == nil || errors.Is(err, ErrMTU) != named {
				t.Errorf("MTU %d: %v", mtu, err)
			}
			t.Log(err)
			g.net.Heal()
		}
		g.net.Shrink(1100, "10.0.0.1")
		_, err = Join(t.Context(), socket, []string{m.cfg.Advertise.String()}, token, JoinRequest{Name: "new"})
		if !errors.Is(err, ErrMTU) || !strings.Contains(err.Error(), "way back") {
			t.Errorf("a small way back: %v", err)
		}
	})
}

// A path that shrinks while data moves stalls nobody for long, whoever sends it, and although
// connections have found out that it carries more.
func TestPathThatShrinks(t *testing.T) {
	for name, c := range map[string]struct {
		there, back int // bytes of question and answer
	}{"answers": {8, 200_000}, "questions": {200_000, 8}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 2, func(t *testing.T, g *ground) {
				a, b := g.meshes[0], g.meshes[1]
				b.HandleBulk(Feature, func(_ context.Context, r *Request) error {
					if _, err := r.TakeBody(nil, c.there); err != nil {
						return err
					}
					return r.Reply(1, make([]byte, c.back))
				})
				ask := func() error {
					_, err := a.Fetch(t.Context(), b.ID(), Question{Header: Header{Kind: Feature, Count: 1}, Body: make([]byte, c.there), Limit: c.back})
					return err
				}
				for range 200 {
					must(t, ask())
				}
				g.net.Shrink(1280)
				begin, tries := time.Now(), 1
				for err := ask(); err != nil; err = ask() {
					t.Logf("after %s: %v", time.Since(begin), err)
					if tries++; time.Since(begin) > 30*time.Second {
						t.Fatal("it stalls")
					}
				}
				took := time.Since(begin)
				t.Logf("went on after %s and %d questions", took, tries)
				if took > 6*time.Second {
					t.Errorf("it stalled for %s", took)
				}
				for range 100 {
					must(t, ask())
				}
			})
		})
	}
}

// So does one that shrinks under calls.
func TestPathThatShrinksUnderCalls(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		call := func() error {
			_, err := a.Call(t.Context(), b.ID(), "echo", bytes.Repeat([]byte{7}, 20_000))
			return err
		}
		for range 200 {
			must(t, call())
		}
		g.net.Shrink(1280)
		begin := time.Now()
		for err := call(); err != nil; err = call() {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("it stalls: %v", err)
			}
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("it stalled for %s", took)
		}
	})
}

// Checks find no fault with a path that loses packets of any size, or a slow peer.
func TestLossIsNoSmallPath(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		g.net.Lose(0.05, 5*time.Millisecond)
		begin, failed := time.Now(), 0
		for time.Since(begin) < time.Minute {
			if _, err := a.Call(t.Context(), b.ID(), "echo", make([]byte, 1500)); errors.Is(err, ErrPath) {
				failed++
			}
			<-time.After(300 * time.Millisecond)
		}
		if failed > 0 {
			t.Errorf("%d calls were cut off", failed)
		}
	})
}

func TestPings(t *testing.T) {
	p := newPings()
	from := netip.MustParseAddrPort("10.0.0.7:1")
	ping := append([]byte{tagPing}, bytes.Repeat([]byte{9}, 1251)...)
	size, ok := parsePong(p.answer(ping, udp(from)), ping[1:1+nonceSize])
	if !ok || size != len(ping) {
		t.Errorf("a ping of %d bytes was answered with %d, %v", len(ping), size, ok)
	}
	if p.answer(ping[:63], udp(from)) != nil {
		t.Error("an answer is larger than its question")
	}
	n := 0
	for range 1000 {
		if p.answer(ping, udp(from)) != nil {
			n++
		}
	}
	if n > 60 {
		t.Errorf("one host got %d answers at once", n)
	}
}

func FuzzPong(f *testing.F) {
	nonce := bytes.Repeat([]byte{3}, nonceSize)
	f.Add(append(append([]byte{tagPong}, nonce...), 0xe4, 0x04))
	f.Add([]byte{tagPong})
	f.Fuzz(func(t *testing.T, b []byte) {
		if size, ok := parsePong(b, nonce); ok && (size < pingSizes[0] || size > MostPacket) {
			t.Fatalf("%x was read as %d", b, size)
		}
	})
}
