package mesh

import (
	"bytes"
	"testing"
)

// What one node sends to another is counted on the connection between them, at both ends.
func TestTraffic(t *testing.T) {
	virtual(t, 1, func(t *testing.T, g *ground) {
		a := g.meshes[0]
		b := g.open(nil)
		b.Handle("echo", echo)
		b.Ready()
		g.wait("a knows b", func() bool { return len(alive(a)) == 2 })
		sum := func(m *Mesh, peer string) (s Traffic) {
			t.Helper()
			seen := map[uint64]bool{}
			for _, c := range m.Traffic() {
				if c.Peer != peer || seen[c.Connection] {
					t.Errorf("a connection is %+v", c)
				}
				seen[c.Connection] = true
				s.Sent, s.Received, s.RTT = s.Sent+c.Sent, s.Received+c.Received, max(s.RTT, c.RTT)
			}
			return s
		}
		before := [2]Traffic{sum(a, b.ID()), sum(b, a.ID())}
		const size = 100_000
		_, err := a.Call(t.Context(), b.ID(), "echo", bytes.Repeat([]byte("x"), size))
		must(t, err)
		after := [2]Traffic{sum(a, b.ID()), sum(b, a.ID())}
		for i := range after {
			if sent, received := after[i].Sent-before[i].Sent, after[i].Received-before[i].Received; sent < size || received < size || sent > 2*size || received > 2*size {
				t.Errorf("%d bytes were sent and %d received", sent, received)
			}
		}
		if after[0].RTT <= 0 {
			t.Error("the round trip was not measured")
		}
	})
}
