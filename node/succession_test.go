package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// caOn returns what a node says of the mesh's CA.
func caOn(t *testing.T, at *nodetest.Instance) api.CA {
	t.Helper()
	ca, err := at.API().CA(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// rotated waits until all nodes that run have retired the CAs before the one with this number.
func rotated(t *testing.T, c *nodetest.Cluster, serial uint64) time.Duration {
	t.Helper()
	return c.Wait("the former CA has ended", time.Minute, func() bool {
		for _, n := range c.Nodes {
			if ca := caOn(t, n); n.Running() && (ca.Serial != serial || ca.Replacing) {
				return false
			}
		}
		return true
	})
}

// The CA is replaced under a job, by an order to any node. The job loses nothing, the tokens made
// before end, those made after let nodes in, and the mesh forms again after a restart.
func TestTheCAIsReplacedUnderAJob(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		want := waitState(c, c.Nodes[0], learning(t, c.Nodes[0], "leap", 20), "done")
		old, first := c.Nodes[0].Token(), caOn(t, c.Nodes[0])
		if first.Serial != 0 || first.Named != nil || first.Replacing {
			t.Errorf("%+v", first)
		}
		id := learning(t, c.Nodes[0], "leap", 20)
		under(c, c.Nodes[0], id, 2)
		by := c.Others(c.Leader())[0]
		ca, err := by.API().RotateCA(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ca.Serial != 1 || !ca.Replacing || ca.Fingerprint == first.Fingerprint {
			t.Errorf("%+v", ca)
		}
		if _, err := by.API().RotateCA(t.Context()); err == nil || !strings.Contains(err.Error(), "is being replaced already") {
			t.Errorf("a second one at once: %v", err)
		}
		if took := rotated(t, c, 1); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		j := waitState(c, c.Nodes[0], id, "done")
		if n := wrong(j, want); n > 0 || len(ages(j)) != 1 {
			t.Errorf("%d of %d epochs have other weights, in generations %v", n, len(j.History), ages(j))
		}
		for _, at := range c.Nodes {
			if err := newcomer(t, c, at, old, "late", nil); !errors.Is(err, identity.ErrForeignMesh) {
				t.Errorf("a token that pins the former CA, at %s: %v", at.Name, err)
			}
		}
		if list, err := by.API().Tokens(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("tokens of the former CA are left: %v (%v)", list, err)
		}
		c.Grow(1)
		again := func() { // nodes read the plan from the beginning
			for _, n := range c.Nodes {
				n.Kill()
			}
			for _, n := range c.Nodes {
				n.Restart()
			}
			for _, n := range c.Nodes {
				n.WaitReady()
			}
			c.WaitEqual(time.Minute)
		}
		again()
		errs := make([]error, len(c.Nodes)) // all at once
		var wg sync.WaitGroup
		for i, n := range c.Nodes {
			wg.Go(func() { _, errs[i] = n.API().RotateCA(t.Context()) })
		}
		wg.Wait()
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
			} else if !strings.Contains(err.Error(), "replaced already") && !strings.Contains(err.Error(), "somebody else") {
				t.Errorf("one of several at once: %v", err)
			}
		}
		if done != 1 {
			t.Errorf("%d of %d orders at once were done", done, len(errs))
		}
		rotated(t, c, 2)
		again()
		rotated(t, c, 2)
	})
}

// A node that is away while the CA is replaced is waited for, and finds its way back. So does a mesh
// whose leader dies in the middle. A voter that is away stands in the way from the beginning.
func TestNodesThatAreAwayWhileTheCAIsReplaced(t *testing.T) {
	nodetest.Virtual(t, 6, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(5)
		voters := map[string]bool{}
		for _, m := range c.Nodes[0].Members() {
			voters[m.Name] = m.Role != "nonvoter"
		}
		at := slices.IndexFunc(c.Nodes, func(n *nodetest.Instance) bool { return !voters[n.Name] })
		if at < 0 {
			t.Fatalf("all of %v vote", voters)
		}
		away := c.Nodes[at]
		voter := c.Others(c.Leader())[0]
		if voter == away || !voters[voter.Name] {
			voter = c.Others(c.Leader())[1]
		}
		c.Isolate(voter)
		_, err := c.Leader().API().RotateCA(t.Context())
		if err == nil || !strings.Contains(err.Error(), "node "+voter.Name+" is a voter") {
			t.Errorf("with a voter away: %v", err)
		}
		c.Network.Heal()
		c.WaitEqual(time.Minute)

		away.Kill()
		failed(c, away)
		leader := c.Leader()
		if _, err := leader.API().RotateCA(t.Context()); err != nil {
			t.Fatal(err)
		}
		leader.Kill()
		c.Wait("only those who are away lack a certificate", time.Minute, func() bool {
			for _, n := range c.Nodes {
				if !n.Running() {
					continue
				}
				ca := caOn(t, n)
				if !ca.Replacing || len(ca.Waiting) != 2 || !slices.Contains(ca.Waiting, away.Name) || !slices.Contains(ca.Waiting, leader.Name) {
					return false
				}
			}
			return true
		})
		leader.Restart()
		leader.WaitReady()
		c.Wait("only one is waited for, and status says so", 5*time.Minute, func() bool {
			ca := caOn(t, leader)
			return ca.Replacing && len(ca.Waiting) == 1 &&
				slices.ContainsFunc(leader.Status().Problems, func(p string) bool { return strings.Contains(p, "the former CA is trusted for") })
		})
		away.Restart()
		away.WaitReady()
		rotated(t, c, 1)
		c.WaitEqual(time.Minute)
	})
}

// Voters whose file with the CA's key was lost get it from one that has it, and the mesh admits nodes
// again, although one of them leads when it comes back.
func TestALeaderWithoutTheKeyOfTheCA(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		rich := c.Nodes[0]
		poor := c.Others(rich)
		for _, n := range c.Nodes {
			n.Kill()
		}
		for _, n := range poor {
			if err := os.Remove(filepath.Join(n.Options.DataDir, "identity", "ca.key")); err != nil {
				t.Fatal(err)
			}
			n.Restart()
		}
		for _, n := range poor {
			n.WaitReady()
			if caOn(t, n).Key {
				t.Fatalf("%s has a key from nowhere", n.Name)
			}
		}
		rich.Restart()
		rich.WaitReady()
		c.Wait("all have the key", time.Minute, func() bool {
			return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return !caOn(t, n).Key })
		})
		if err := newcomer(t, c, poor[0], poor[0].Token(), "late", nil); err != nil {
			t.Error(err)
		}
	})
}

// Who joins by a token that pins the new CA does not know the former one. It gets no vote while a
// member is away that knows no other, and could not follow it.
func TestNewcomersVoteWhenTheFormerCAHasEnded(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		away := c.Nodes[slices.IndexFunc(c.Nodes, func(n *nodetest.Instance) bool { return roleOf(c.Nodes[0], n) == "nonvoter" })]
		away.Kill()
		failed(c, away)
		if _, err := c.Leader().API().RotateCA(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Wait("only one lacks a certificate", time.Minute, func() bool { return len(caOn(t, c.Leader()).Waiting) == 1 })
		late := c.Grow(2) // so that five run, who would all vote
		<-time.After(time.Minute)
		for _, n := range late {
			if role := roleOf(c.Leader(), n); role != "nonvoter" {
				t.Errorf("newcomer %s is a %s", n.Name, role)
			}
		}
		away.Restart()
		away.WaitReady()
		rotated(t, c, 1)
		c.WaitVoters(5)
	})
}

func roleOf(seenBy, n *nodetest.Instance) string {
	for _, m := range seenBy.Members() {
		if m.Name == n.Name {
			return m.Role
		}
	}
	return ""
}

// Who revokes a node hears that it has the CA's key, also if it does not vote any more, and that it may
// have it if it does not answer; and while the CA is being replaced, when the key will be worthless.
func TestARevokedNodeMayHaveTheKeyOfTheCA(t *testing.T) {
	nodetest.Virtual(t, 4, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		leader := c.Leader()
		revoked := func(n *nodetest.Instance) string {
			n.MayEnd = func(err error) bool { return errors.Is(err, node.ErrRemoved) }
			out, err := leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: n.Name, Revoke: true})
			if err != nil {
				t.Fatal(err)
			}
			return out.Warning
		}
		once := c.Nodes[slices.IndexFunc(c.Nodes, func(n *nodetest.Instance) bool { return n != leader && roleOf(leader, n) == "voter" })]
		once.Kill()
		failed(c, once)
		c.Wait("another votes in its place", 10*time.Minute, func() bool { return roleOf(leader, once) == "nonvoter" })
		once.Restart()
		once.WaitReady()
		<-time.After(5 * time.Second)
		if role := roleOf(leader, once); role != "nonvoter" {
			t.Fatalf("it is a %s again", role)
		}
		if got := revoked(once); !strings.Contains(got, "holds the key of the mesh's CA, by which") || !strings.Contains(got, "`hopmesh ca rotate` now") {
			t.Errorf("of a node that voted once: %q", got)
		}

		away := c.Grow(1)[0]
		away.Kill()
		c.Wait("it has failed", time.Minute, func() bool {
			return slices.ContainsFunc(leader.Members(), func(m api.Member) bool { return m.Name == away.Name && m.Status == "failed" })
		})
		if _, err := leader.API().RotateCA(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := revoked(away); !strings.Contains(got, "does not answer") || !strings.Contains(got, "once `hopmesh ca show` says") {
			t.Errorf("of a node that does not answer while the CA is being replaced: %q", got)
		}
	})
}
