package mesh

import (
	"testing"
	"time"
)

// Jobs stand still until a node that is dead is known to be, whenever it dies; one that
// is not heard of for two seconds is not.
func TestFailureIsSeenSoon(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		virtual(t, nodes, func(t *testing.T, g *ground) {
			failing, others := g.meshes[0], g.meshes[1:]
			ips := []string{"10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"}[:nodes-1]
			g.wait("all know each other", func() bool {
				for _, m := range g.meshes {
					if len(alive(m)) != nodes {
						return false
					}
				}
				return true
			})
			seen := func() bool {
				for _, m := range others {
					if statusAt(m, failing.ID()) == Alive {
						return false
					}
				}
				return true
			}
			longest, sum, deaths := time.Duration(0), time.Duration(0), 0
			for n := range 64 {
				<-time.After(20*time.Second + time.Duration(n)*47*time.Millisecond)
				for _, m := range g.meshes {
					if len(alive(m)) != nodes {
						t.Fatalf("%s sees %d nodes", m.cfg.Name, len(alive(m)))
					}
				}
				begin := time.Now()
				g.net.Partition([]string{"10.0.0.1"}, ips)
				short := n%2 == 1
				for !seen() && (!short || time.Since(begin) < 2*time.Second) {
					<-time.After(10 * time.Millisecond)
				}
				if short && seen() {
					t.Errorf("%d nodes: it counts as dead after %s", nodes, time.Since(begin))
				}
				if !short {
					longest, sum, deaths = max(longest, time.Since(begin)), sum+time.Since(begin), deaths+1
				}
				g.net.Heal()
			}
			mean := sum / time.Duration(deaths)
			t.Logf("%d nodes: seen after %s, and %s at most", nodes, mean, longest)
			if mean > 5400*time.Millisecond {
				t.Errorf("%d nodes: seen after %s, and %s at most", nodes, mean, longest)
			}
		})
	}
}
