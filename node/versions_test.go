package node_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A member that comes back speaking another version on the wire is a problem on both sides, in
// one sentence that names both, and gets no work; back with the old one, all is well.
func TestMemberThatSpeaksAnotherVersion(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		other := c.Others(c.Leader())[0]
		back := func(version string, wire mesh.Range) {
			if err := other.Stop(); err != nil {
				t.Fatal(err)
			}
			other.Options.Version, other.Options.Numbers.Wire = version, wire
			other.Restart()
		}
		back("v9", mesh.Range{Min: 9, Max: 9})
		says := func(i *nodetest.Instance, all ...string) bool {
			for _, p := range i.Status().Problems {
				missing := false
				for _, s := range all {
					missing = missing || !strings.Contains(p, s)
				}
				if !missing {
					return true
				}
			}
			return false
		}
		c.Wait("all say it", time.Minute, func() bool {
			for _, i := range c.Others(other) {
				if !says(i, "node "+other.Name+" runs", "speaks 9 on the wire", "hopmesh test, which speaks 1:", "install the same version") ||
					!says(other, " at "+i.Addr()+" runs hopmesh test, which speaks 1 on the wire", "hopmesh v9, which speaks 9:") {
					return false
				}
			}
			return true
		})
		for _, i := range c.Others(other) {
			for _, m := range i.Members() {
				if (m.Unlike != "") != (m.Name == other.Name) {
					t.Errorf("%s lists %+v", i.Name, m)
				}
			}
			if says(i, "not answering: "+other.Name) {
				t.Errorf("%s also says that it does not answer", i.Name)
			}
		}
		back("v2", mesh.Range{Min: 1, Max: 2})
		other.WaitReady()
		c.Wait("nobody says it any more", 2*time.Minute, func() bool {
			for _, i := range c.Nodes {
				if len(i.Status().Problems) > 0 {
					return false
				}
			}
			return true
		})
		c.Wait("gossip has the new numbers", time.Minute, func() bool {
			return slices.ContainsFunc(c.Leader().Members(), func(m api.Member) bool { return m.Name == other.Name && m.Numbers != nil && m.Numbers.Wire == "1-2" })
		})
		for _, m := range c.Leader().Members() {
			if n := m.Numbers; n == nil || n.Wire != map[bool]string{true: "1-2", false: "1"}[m.Name == other.Name] || n.Disk != "1" || n.Computing != strconv.Itoa(recipe.Computing) {
				t.Errorf("%s has the numbers %+v", m.Name, n)
			}
		}
	})
}

// A newcomer that speaks another version ends with a sentence that names both.
func TestNewcomerThatSpeaksAnotherVersion(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		i := c.Add()
		i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
		i.Options.Version, i.Options.Numbers.Wire = "v9", mesh.Range{Min: 9, Max: 9}
		i.Start()
		err := i.Exited(time.Minute)
		for _, s := range []string{c.Nodes[0].Addr(), "hopmesh test, which speaks 1 ", "hopmesh v9, which speaks 9:"} {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Fatalf("%v does not say %q", err, s)
			}
		}
	})
}

// While a node tries to join, its status has the error and the address that it asks.
func TestStatusOfANodeThatTriesToJoin(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		token := c.Nodes[0].Token()
		i := c.Add()
		i.Options.Join, i.Options.Token = []string{"10.0.0.99:7946"}, token
		i.Start()
		c.Wait("it says why", time.Minute, func() bool {
			p := i.Status().Problems
			return len(p) == 1 && strings.Contains(p[0], "10.0.0.99:7946") && strings.Contains(p[0], "was lost") && !strings.Contains(p[0], "hopmesh join")
		})
	})
}
