package mesh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// heard collects what a mesh says of others.
type heard struct {
	mu  sync.Mutex
	all []Status
}

func (h *heard) change(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, c.Status)
}

func (h *heard) since(n int) []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all[n:])
}

// meet opens connections between two nodes.
func meet(t *testing.T, a, b *Mesh) {
	t.Helper()
	_, err := a.Call(t.Context(), b.ID(), "echo", nil)
	must(t, err)
}

// A node that stops has failed at once, not when gossip finds it dead. One that is back before
// gossip finds it dead is alive from then on.
func TestStoppingIsSeenAtOnce(t *testing.T) {
	virtual(t, 0, func(t *testing.T, g *ground) {
		h := new(heard)
		a := g.open(func(c *Config) { c.OnChange = h.change })
		a.Handle("echo", echo)
		a.Ready()
		g.grow(2)
		b := g.meshes[1]
		meet(t, a, b)
		before, begin := len(h.since(0)), time.Now()
		must(t, b.Close())
		must(t, b.cfg.Conn.Close())
		g.wait("it has failed", func() bool { return statusAt(a, b.ID()) == Failed })
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("seen after %s", took)
		}
		if all := h.since(before); !slices.Equal(all, []Status{Failed}) {
			t.Errorf("said: %v", all)
		}
		if n := len(alive(a)); n != 2 {
			t.Errorf("%d are alive", n)
		}
		if !slices.Contains(a.absent(false), b.ID()+"/"+b.cfg.Advertise.String()) {
			t.Error("it is not sought")
		}

		cfg := b.cfg
		cfg.Conn = g.socket(1)
		again, err := Open(cfg)
		must(t, err)
		defer func() { must(t, errors.Join(again.Close(), cfg.Conn.Close())) }()
		again.Handle("echo", echo)
		again.Ready()
		back := time.Now()
		meet(t, again, a)
		g.wait("it is alive", func() bool { return statusAt(a, b.ID()) == Alive })
		// The process before may be heard late.
		a.pool.parts(&link{peer: b.ID(), born: begin})
		<-time.After(10 * time.Millisecond)
		if got := statusAt(a, b.ID()); got != Alive {
			t.Errorf("it is %s by the word of the process before", got)
		}
		if p, _ := a.Member(b.ID()); p.Since.Before(back) || time.Since(begin) > time.Second {
			t.Errorf("alive since %s, %s after it was back", p.Since, time.Since(back))
		}
		<-time.After(time.Minute)
		// Gossip may say once more that it is alive.
		if all := h.since(before); !slices.Equal(slices.Compact(all), []Status{Failed, Alive}) {
			t.Errorf("said: %v", all)
		}
	})
}

// Gossip agrees later, which changes nothing, or finds the node alive after all.
func TestAGoodbyeCountsForAWhile(t *testing.T) {
	virtual(t, 3, func(t *testing.T, g *ground) {
		a, stopping, lying := g.meshes[0], g.meshes[1], g.meshes[2]
		meet(t, a, stopping)
		meet(t, a, lying)
		must(t, stopping.Close())
		g.wait("it has failed", func() bool { return statusAt(a, stopping.ID()) == Failed })
		was, _ := a.Member(stopping.ID())
		<-time.After(time.Minute)
		if p, _ := a.Member(stopping.ID()); p.Status != Failed || p.Since != was.Since {
			t.Errorf("it is %s since %s, not failed since %s", p.Status, p.Since, was.Since)
		}

		meet(t, lying, a)
		for _, l := range lying.pool.links() {
			_ = l.conn.CloseWithError(quic.ApplicationErrorCode(CodeGoodbye), "")
		}
		// It may be back before anybody looks.
		g.wait("the one that lies has failed", func() bool {
			a.members.mu.RLock()
			defer a.members.mu.RUnlock()
			return !a.members.heeded[lying.ID()].IsZero()
		})
		meet(t, lying, a) // else it is alive again only when its word is over
		g.wait("it is alive", func() bool { return statusAt(a, lying.ID()) == Alive })
		for range 5 {
			a.members.tell(word{id: lying.ID(), parts: true})
			<-time.After(100 * time.Millisecond)
			if statusAt(a, lying.ID()) != Alive {
				t.Error("it may say so again and again")
			}
		}
		<-time.After(partedFor)
		begin := time.Now()
		a.members.tell(word{id: lying.ID(), parts: true})
		g.wait("it has failed again", func() bool { return statusAt(a, lying.ID()) == Failed })
		g.wait("it is alive though nobody dials", func() bool { return statusAt(a, lying.ID()) == Alive })
		if took := time.Since(begin); took > partedFor+time.Second {
			t.Errorf("alive after %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Call(ctx, stopping.ID(), "echo", nil); err == nil {
			t.Error("a node that stopped was called")
		}
	})
}

// A node that was taken for dead, and lives, does not take the others for dead.
func TestWhoIsTakenForDeadHearsNoGoodbye(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		meet(t, a, b)
		meet(t, b, a)
		for _, l := range (paths{a}).links() {
			l.Close()
		}
		g.wait("it has heard that the connections ended", func() bool { return len(b.pool.links()) == 0 })
		<-time.After(time.Second)
		b.members.mu.RLock()
		heeded := b.members.heeded[a.ID()]
		b.members.mu.RUnlock()
		if !heeded.IsZero() || statusAt(b, a.ID()) != Alive {
			t.Errorf("it takes the other for %s, by a word of %s", statusAt(b, a.ID()), heeded)
		}
	})
}
