package mesh

import (
	"bytes"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

func statusAt(m *Mesh, id string) Status {
	p, ok := m.Member(id)
	if !ok {
		return ""
	}
	return p.Status
}

func TestGossipSeesFailureLeaveAndReturn(t *testing.T) {
	virtual(t, 3, func(t *testing.T, g *ground) {
		a, failing, leaving := g.meshes[0], g.meshes[1], g.meshes[2]
		g.net.Partition([]string{"10.0.0.2"}, []string{"10.0.0.1", "10.0.0.3"})
		g.wait("the failure is seen", func() bool { return statusAt(a, failing.ID()) == Failed })
		if p, _ := a.Member(failing.ID()); time.Since(p.Since) > time.Second {
			t.Errorf("failed for %s just now", time.Since(p.Since))
		}
		g.net.Heal()
		g.wait("its return is seen", func() bool { return statusAt(a, failing.ID()) == Alive })
		must(t, leaving.Leave())
		g.wait("the leave is seen", func() bool { return statusAt(a, leaving.ID()) == Left })
		for _, p := range a.Peers() {
			if p.ID == leaving.ID() {
				t.Error("a node that left is kept for the next start")
			}
		}
	})
}

// Gossip with another key is not heard, and the right key heals it.
func TestGossipNeedsTheKey(t *testing.T) {
	virtual(t, 2, func(t *testing.T, g *ground) {
		a, b := g.meshes[0], g.meshes[1]
		must(t, b.SetGossipKeys([][]byte{bytes.Repeat([]byte{7}, 32)}))
		g.wait("they lose each other", func() bool { return statusAt(a, b.ID()) == Failed })
		must(t, b.SetGossipKeys([][]byte{a.cfg.Identity.GossipKeys()[0].Key}))
		g.wait("they find each other", func() bool { return statusAt(a, b.ID()) == Alive && statusAt(b, a.ID()) == Alive })
	})
}

// The three steps of a rotation, with nobody lost in between.
func TestGossipKeyTurnsWithoutAnOutage(t *testing.T) {
	virtual(t, 3, func(t *testing.T, g *ground) {
		old, next := g.first.GossipKeys()[0].Key, identity.NewGossipKey(2).Key
		for _, ring := range [][][]byte{{old, next}, {next, old}, {next}} {
			for _, m := range g.meshes {
				must(t, m.SetGossipKeys(ring))
				<-time.After(3 * time.Second) // gossip goes on with mixed rings
			}
			for _, m := range g.meshes {
				if n := len(alive(m)); n != 3 {
					t.Fatalf("%s sees %d nodes", m.cfg.Name, n)
				}
			}
		}
	})
}

func TestNamesOfPlainCharactersOnly(t *testing.T) {
	for _, good := range []string{"a", "node-1", "gpu_3.rack.7"} {
		must(t, CheckName(good))
	}
	for _, bad := range []string{"", "two words", "näme", "a/b", "x\n", string(bytes.Repeat([]byte("x"), 64))} {
		if CheckName(bad) == nil {
			t.Errorf("%q may be a name", bad)
		}
	}
}
