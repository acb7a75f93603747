package node_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Whoever listens on the wire, from the first packet on, reads neither names nor
// ids, neither tokens nor anything of the plan.
func TestNothingCrossesTheWireInPlain(t *testing.T) {
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		var wire bytes.Buffer
		c.Network.Tap(func(p []byte) { wire.Write(append(p, '|')) })
		c.Grow(3)
		c.WaitVoters(3)
		token := c.Nodes[0].Token()
		last := c.Leader()
		last.Kill()
		c.Wait("another leader", time.Minute, func() bool {
			l := c.Others(last)[0].Status().Leader
			return l != "" && l != last.Name
		})
		p := c.Leader().Plan()
		secrets := map[string]string{"token": token, "mesh id": p.MeshID, "a name for a member": `"name"`, "a kind of command": "members"}
		for _, m := range p.Members {
			secrets["the id of "+m.Name] = m.ID
		}
		for _, n := range c.Nodes {
			secrets["the name "+n.Name] = `"` + n.Name + `"`
		}
		secrets["the version"] = "hopmesh/"
		c.Network.Tap(nil)
		if wire.Len() < 50_000 {
			t.Fatalf("only %d bytes were seen", wire.Len())
		}
		for what, secret := range secrets {
			if bytes.Contains(wire.Bytes(), []byte(secret)) {
				t.Errorf("%s crossed the wire in plain", what)
			}
		}
	})
}
