package mesh

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// Jobs stand still until a node that is dead is known to be, whenever it dies; one that
// is not heard of for two seconds is not.
func TestFailureIsSeenSoon(t *testing.T) {
	const deadWithin = 3500 * time.Millisecond // one in some hundreds takes longer than 3 s
	for nodes, times := range map[int]int{3: 64, 5: 64, 10: 16} {
		virtual(t, nodes, func(t *testing.T, g *ground) {
			failing, others := g.meshes[0], g.meshes[1:]
			var ips []string
			for _, m := range others {
				ips = append(ips, m.cfg.Advertise.Addr().String())
			}
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
			for n := range times {
				<-time.After(20*time.Second + time.Duration(n)*47*time.Millisecond)
				for _, m := range g.meshes {
					if len(alive(m)) != nodes {
						t.Fatalf("%s sees %d nodes", m.cfg.Name, len(alive(m)))
					}
				}
				begin := time.Now()
				g.net.Partition([]string{failing.cfg.Advertise.Addr().String()}, ips)
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
			if longest > deadWithin {
				t.Errorf("%d nodes: seen after %s at most, not within %s", nodes, longest, deadWithin)
			}
		})
	}
}

// A node that is killed while its machine lives has failed within two seconds for those who talk with
// it, and is alive again when it is back.
func TestAKilledProcessIsSeenSooner(t *testing.T) {
	for nodes, times := range map[int]int{3: 24, 10: 4} {
		virtual(t, 0, func(t *testing.T, g *ground) {
			g.net.Refuse()
			g.grow(nodes)
			victim, id, longest := g.meshes[1], g.meshes[1].ID(), time.Duration(0)
			talking := make(chan struct{})
			talk := func(m *Mesh) { // as Raft's leader does
				defer func() { talking <- struct{}{} }()
				for m.ctx.Err() == nil {
					ctx, cancel := context.WithTimeout(m.ctx, 200*time.Millisecond)
					_, _ = m.Call(ctx, id, "echo", nil)
					<-ctx.Done()
					cancel()
				}
			}
			others := append(slices.Clone(g.meshes[:1]), g.meshes[2:]...)
			for _, m := range others {
				go talk(m)
			}
			for n := range times {
				<-time.After(20*time.Second + time.Duration(n)*47*time.Millisecond)
				begin := time.Now()
				must(t, victim.cfg.Conn.Close()) // as kill -9 does
				for _, m := range others {
					g.wait("it has failed", func() bool { return statusAt(m, id) == Failed })
				}
				longest = max(longest, time.Since(begin))
				_ = victim.Close()
				cfg := victim.cfg
				cfg.Conn = g.socket(1)
				back, err := Open(cfg)
				must(t, err)
				back.Handle("echo", echo)
				back.Ready()
				for _, m := range others {
					g.wait("it is alive", func() bool { return statusAt(m, id) == Alive })
				}
				victim = back
			}
			t.Logf("%d nodes: %d deaths were seen after %s at most", nodes, times, longest)
			if longest > 2*time.Second {
				t.Errorf("%d nodes: seen after %s at most", nodes, longest)
			}
			for _, m := range others {
				must(t, m.Close())
				<-talking
			}
			must(t, errors.Join(victim.Close(), victim.cfg.Conn.Close()))
		})
	}
}
