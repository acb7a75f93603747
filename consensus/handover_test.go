package consensus

import (
	"testing"
	"time"
)

// A leader that is asked again and again to hand over to a node that does not answer leaves
// nothing behind when it is deposed: what stays would never end.
func TestHandOverToOneThatIsCutOff(t *testing.T) {
	for attempts := 2; attempts < 6; attempts++ {
		virtual(t, func(t *testing.T, c *cluster) {
			c.found("a")
			c.grow("b", "c")
			c.waitVoterCount(10*time.Second, 3)
			old := c.leader()
			var others []*node
			for _, n := range c.running() {
				if n != old {
					others = append(others, n)
				}
			}
			deaf := others[0].id
			c.net.sever(old.id, deaf, true)
			for i := range attempts {
				c.apply(token(i)) // there is something that the node lacks
				if err := old.HandOverTo(t.Context(), deaf); err == nil {
					t.Error("it was handed over to a node that is cut off")
				}
			}
			old.isolate(true)
			c.wait("another leads", time.Minute, func() bool { return !old.isLeader() && c.leaderIn(others) != nil })
			old.isolate(false)
			c.waitEqual(time.Minute)
		})
	}
}
