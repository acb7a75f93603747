package node_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A follower whose disk was full for a while hears of the plan again when it has room, whatever
// was written meanwhile, and the leader can be stopped.
func TestFollowerWithAFullDiskCatchesUp(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		leader := c.Leader()
		follower := c.Others(leader)[0]
		c.Network.Slow(follower.IP(), 15*time.Millisecond) // so that entries follow each other on the way
		for range 8 {
			follower.Fill(true)
			var asking sync.WaitGroup
			for range 30 {
				asking.Go(func() { _ = leader.Token() })
				<-time.After(3 * time.Millisecond)
			}
			asking.Wait()
			<-time.After(time.Second)
			follower.Fill(false)
			c.WaitEqual(30 * time.Second)
		}
		if err := leader.Stop(); err != nil {
			t.Error(err)
		}
		leader.Restart()
		c.WaitEqual(30 * time.Second)
	})
}

// So does one that led before, and had to take entries back while its disk was full.
func TestFormerLeaderWithAFullDiskCatchesUp(t *testing.T) {
	for _, full := range []time.Duration{10 * time.Second, 30 * time.Minute} {
		formerLeader(t, full)
	}
}

func formerLeader(t *testing.T, full time.Duration) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		former := c.Leader()
		c.Isolate(former)
		var asking sync.WaitGroup
		for range 5 {
			asking.Go(func() { // nobody else hears of it
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, _ = former.API().CreateToken(ctx, 0, 0)
			})
		}
		asking.Wait()
		c.Wait("another leads", 30*time.Second, func() bool {
			for _, i := range c.Others(former) {
				if leader := i.Status().Leader; leader == "" || leader == former.Name {
					return false
				}
			}
			return true
		})
		for range 4 {
			_ = c.Others(former)[0].Token()
		}
		former.Fill(true)
		c.Network.Heal()
		<-time.After(full)
		if list := former.Status().Damage; len(list) > 0 {
			t.Errorf("after %v: %+v", full, list)
		}
		former.Fill(false)
		c.WaitEqual(30 * time.Second)
		for _, i := range c.Nodes {
			if list := i.Status().Damage; len(list) > 0 {
				t.Errorf("%s: %+v", i.Name, list)
			}
		}
	})
}

// A clock that is set wrong while a node runs costs nothing that lasts. Once it is right again
// the node is a member as before.
func TestAClockThatIsSetWrong(t *testing.T) {
	for _, by := range []time.Duration{-30 * 24 * time.Hour, -3 * time.Hour, 3 * time.Hour, 200 * 24 * time.Hour} {
		nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
			c.WaitVoters(3)
			wrong := c.Others(c.Leader())[0]
			wrong.Skew(by)
			<-time.After(5 * time.Minute)
			wrong.Kill()
			wrong.Restart()
			<-time.After(5 * time.Minute)
			wrong.Relieve()
			c.WaitEqual(2 * time.Minute)
			c.Wait("all are alive", 2*time.Minute, func() bool {
				for _, i := range c.Nodes {
					for _, m := range i.Members() {
						if m.Status != "alive" {
							return false
						}
					}
				}
				return true
			})
		})
	}
}

// A machine that has slept for longer than its certificate's half life renews it within a minute
// of waking up, though its timers know nothing of the time that has passed.
func TestCertificateAfterASleep(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		before := map[*nodetest.Instance]time.Time{}
		expires := func(i *nodetest.Instance) time.Time {
			id, err := identity.Load(filepath.Join(i.Options.DataDir, "identity"), identity.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return id.NotAfter()
		}
		for _, i := range c.Nodes {
			before[i] = expires(i)
			i.Skew(50 * 24 * time.Hour) // of 90
		}
		<-time.After(3 * time.Minute)
		for _, i := range c.Nodes {
			if now := expires(i); !now.After(before[i].Add(40 * 24 * time.Hour)) {
				t.Errorf("%s: the certificate ends at %v, as before", i.Name, now)
			}
		}
	})
}
