package consensus

import (
	"context"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A voter that has missed how another became one votes for it all the same, if the other's log is
// the newest: nobody else can lead.
func TestAVoterVotesForOneThatItDoesNotKnow(t *testing.T) {
	for _, when := range []struct {
		name  string
		known bool
	}{{"never heard of it", false}, {"knew it without a vote", true}} {
		t.Run(when.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, c *cluster) {
				c.found("a")
				c.grow("b", "c")
				c.waitVoters(30*time.Second, "a", "b", "c")
				a, b, lagging := c.nodes["a"], c.nodes["b"], c.nodes["c"]
				cutOff := func(cut bool) {
					for _, id := range []string{"a", "b", "d"} {
						c.net.sever("c", id, cut)
					}
				}
				if when.known {
					c.grow("d")
					c.wait("it has no vote yet", 10*time.Second, func() bool { return len(lagging.Servers()) == 4 })
				}
				cutOff(true)
				pair := []*node{a, b}
				if !when.known {
					c.add("d").start(nil)
					c.within(func(ctx context.Context) error {
						_, err := c.leaderIn(pair).Apply(ctx, plan.AddMember{Member: member("d")})
						return err
					})
				}
				d := c.nodes["d"]
				c.within(func(ctx context.Context) error {
					return c.leaderIn(pair).change(ctx, plan.Change{Action: plan.Promote, ID: "d"})
				})
				c.wait("it may lead", 10*time.Second, func() bool {
					return c.leaderIn(pair).HandOverTo(t.Context(), "d") == nil
				})
				c.leaderIn([]*node{d})

				// What d writes now comes to b alone, which is then lost.
				c.net.sever("a", "d", true)
				c.within(func(ctx context.Context) error {
					if _, err := d.Apply(ctx, token(1)); err == nil {
						t.Error("two of four voters committed something")
					}
					return nil
				})
				b.kill()
				c.net.sever("a", "d", false)
				cutOff(false)
				c.leaderIn([]*node{d})
				c.wait("they agree", 10*time.Second, func() bool {
					return lagging.Leader() == "d" && a.Leader() == "d"
				})
				c.waitEqual(10 * time.Second)
			})
		})
	}
}

// within runs what must succeed, with time to end in.
func (c *cluster) within(f func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	if err := f(ctx); err != nil {
		c.t.Fatal(err)
	}
}
