package mesh

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

// Who has no certificate of the newest authority when the former one ends loses its connections,
// those that it has as well. The others keep theirs.
func TestConnectionsEndWithTheirAuthority(t *testing.T) {
	virtual(t, 3, func(t *testing.T, g *ground) {
		a, b, impostor := g.meshes[0], g.meshes[1], g.meshes[2]
		calls := func(from, to *Mesh) error {
			_, err := from.Call(t.Context(), to.ID(), "echo", []byte("x"))
			return err
		}
		ids := []*identity.Identity{a.cfg.Identity, b.cfg.Identity, impostor.cfg.Identity}
		s, key, err := g.first.NewSuccessor(time.Now())
		must(t, err)
		must(t, g.first.HoldNextCAKey(key))
		for _, id := range ids {
			_, err := id.Succeed(s)
			must(t, err)
		}
		for i, id := range ids[:2] {
			r, err := id.Renew()
			must(t, err)
			chain, err := g.first.Sign(r.CSR(), id.ID(), time.Now())
			must(t, err)
			must(t, r.Adopt(chain))
			g.meshes[i].Redial()
		}
		must(t, calls(a, b))
		must(t, calls(impostor, a))
		must(t, calls(b, impostor))
		linked := func() (n int) {
			for _, m := range g.meshes[:2] {
				for _, l := range m.pool.links() {
					if l.peer == impostor.ID() {
						n++
					}
				}
			}
			return n
		}
		if linked() == 0 {
			t.Fatal("it has no connections to lose")
		}
		for i, id := range ids[:2] {
			if retired, err := id.Retire(); err != nil || !retired {
				t.Fatalf("%v, %v", retired, err)
			}
			g.meshes[i].Distrust()
		}
		g.wait("it has no connections", func() bool { return linked() == 0 })
		if err := calls(impostor, a); err == nil {
			t.Error("it is answered")
		}
		must(t, calls(a, b))
		must(t, calls(b, a))
	})
}
