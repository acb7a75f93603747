package consensus

import (
	"testing"
	"time"
)

// A node that has led is as quick to miss its leader as one that never did.
func TestSilenceAfterLeading(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(10*time.Second, 3)
		old := c.leader()
		<-time.After(time.Hour)
		if s := old.Silence(); s != 0 {
			t.Errorf("who leads has heard nothing for %s", s)
		}
		if err := old.HandOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.leader()
		<-time.After(time.Minute)
		if s := old.Silence(); s > time.Second {
			t.Errorf("with a leader, it has heard nothing for %s", s)
		}
		old.isolate(true)
		c.wait("it gives its leader up", 2*patienceOfFollowers+time.Second, func() bool { return old.Leader() == "" })
		<-time.After(time.Minute)
		if s := old.Silence(); s < time.Minute || s > time.Minute+5*time.Second {
			t.Errorf("after a minute alone, it has heard nothing for %s", s)
		}
	})
}
