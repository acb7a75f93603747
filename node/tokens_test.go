package node_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// tokenOf returns what the mesh keeps of a token, as a node lists it.
func tokenOf(t *testing.T, at *nodetest.Instance, id string) (api.TokenInfo, bool) {
	t.Helper()
	list, err := at.API().Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(x api.TokenInfo) bool { return x.ID == id })
	if i < 0 {
		return api.TokenInfo{}, false
	}
	return list[i], true
}

// A revoked node can't come back under a new id: the token it joined by ends with it, and so
// do those it made and those that newcomers showed it. Others stay, and a new one is there.
func TestTokensOfARevokedNodeEnd(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		leader := c.Leader()
		create := func(at *nodetest.Instance) api.Token {
			made, err := at.API().CreateToken(t.Context(), time.Hour, 0)
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		joined, other := create(leader), create(c.Others(leader)[0])
		bad := c.Add()
		bad.Options.Join, bad.Options.Token = []string{leader.Addr()}, joined.Token
		bad.Start()
		bad.WaitReady()
		own, shown := create(bad), create(leader)
		if err := newcomer(t, c, bad, shown.Token, "honest", nil); err != nil {
			t.Fatal(err)
		}
		for id, names := range map[string][]string{joined.ID: {bad.Name}, shown.ID: {"honest"}, own.ID: {}, other.ID: {}} {
			got, ok := tokenOf(t, leader, id)
			if !ok || !slices.Equal(got.Nodes, names) || got.Used != uint64(len(names)) || got.Left != nil {
				t.Errorf("token %s, by which %v joined: %+v", id, names, got)
			}
		}
		out, err := leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: bad.Name, Revoke: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []api.Token{joined, own, shown} {
			if !slices.Contains(out.Tokens, x.ID) {
				t.Errorf("token %s has not ended: %v", x.ID, out.Tokens)
			}
			for _, at := range c.Others(bad) {
				err := newcomer(t, c, at, x.Token, "again", nil)
				if mesh.RefusalOf(err) != mesh.RefusedToken || !strings.Contains(err.Error(), "not known here") {
					t.Errorf("it comes back at %s: %v", at.Name, err)
				}
			}
		}
		if _, ok := tokenOf(t, leader, other.ID); !ok || slices.Contains(out.Tokens, other.ID) {
			t.Error("a token that it never saw has ended")
		}
		if again, err := leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: bad.Name, Revoke: true}); err != nil || len(again.Tokens) != 0 {
			t.Errorf("revoked again: %v (%v)", again.Tokens, err)
		}
		if out.Warning != "" {
			t.Errorf("of a node that never voted: %s", out.Warning)
		}
		_, token, ok := strings.Cut(out.Join, " --token ")
		if !ok || !strings.Contains(out.Join, leader.Addr()) {
			t.Fatalf("the new join command is %q", out.Join)
		}
		if err := newcomer(t, c, leader, token, "next", nil); err != nil {
			t.Errorf("the new token: %v", err)
		}
		voter := c.Others(leader)[0]
		out, err = leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: voter.Name, Revoke: true})
		if err != nil || !strings.Contains(out.Warning, "holds the key of the mesh's CA") {
			t.Errorf("of a voter: %q (%v)", out.Warning, err)
		}
	})
}

// The new join command does not send newcomers to the revoked node, which gossip still sees.
func TestNobodyIsSentToARevokedNode(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		leader := c.Leader()
		bad := c.Others(leader)[0]
		made, err := leader.API().CreateToken(t.Context(), time.Hour, 0)
		if err != nil || !strings.Contains(made.Join, "--join "+bad.Addr()) {
			t.Fatalf("while it is a member: %q, %v", made.Join, err)
		}
		out, err := leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: bad.Name, Revoke: true})
		if err != nil || !strings.Contains(out.Join, "--join "+leader.Addr()) || strings.Contains(out.Join, bad.Addr()) {
			t.Errorf("the new join command is %q, %v", out.Join, err)
		}
	})
}

// The plan counts uses: of newcomers that ask at once, at different nodes, as many get in as
// the token admits.
func TestUsesOfATokenAreCounted(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		made, err := c.Others(c.Leader())[0].API().CreateToken(t.Context(), time.Hour, 2)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := identity.ParseToken(made.Token)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			req, err := identity.NewRequest(filepath.Join(t.TempDir(), "identity"), "new"+string(rune('a'+i)))
			if err != nil {
				t.Fatal(err)
			}
			socket := c.Network.Listen("10.9.9."+string(rune('1'+i)), 7946)
			defer socket.Close()
			wg.Go(func() {
				_, errs[i] = mesh.Join(t.Context(), socket, []string{c.Nodes[i%3].Addr()}, parsed, mesh.JoinRequest{
					ID: req.ID(), Name: "new" + string(rune('a'+i)), CSR: req.CSR(), Clock: time.Now(),
				})
			})
		}
		wg.Wait()
		in := 0
		for _, err := range errs {
			switch {
			case err == nil:
				in++
			case mesh.RefusalOf(err) != mesh.RefusedToken || !strings.Contains(err.Error(), "as many nodes as it may"):
				t.Errorf("refused with %v", err)
			}
		}
		got, _ := tokenOf(t, c.Nodes[0], made.ID)
		c.Wait("all know of it", time.Minute, func() bool {
			got, _ = tokenOf(t, c.Nodes[0], made.ID)
			return got.Used == 2
		})
		if in != 2 || len(got.Nodes) != 2 || got.Left == nil || *got.Left != 0 || *got.Uses != 2 {
			t.Errorf("%d got in, and the token is %+v", in, got)
		}
	})
}

// A newcomer that crashed after it took the last use asks again, and takes no other. Another
// with the same id does not get in by that.
func TestJoinAgainByTheLastUse(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		made, err := c.Leader().API().CreateToken(t.Context(), time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := identity.ParseToken(made.Token)
		if err != nil {
			t.Fatal(err)
		}
		i := c.Add()
		req, err := identity.NewRequest(filepath.Join(i.Options.DataDir, "identity"), i.Name)
		if err != nil {
			t.Fatal(err)
		}
		socket := c.Network.Listen("10.9.9.9", 7946)
		_, err = mesh.Join(t.Context(), socket, []string{c.Nodes[0].Addr()}, parsed, mesh.JoinRequest{
			ID: req.ID(), Name: i.Name, CSR: req.CSR(), Clock: time.Now(),
		})
		_ = socket.Close()
		if err != nil {
			t.Fatal(err)
		}
		err = newcomer(t, c, c.Nodes[1], made.Token, i.Name, func(r *mesh.JoinRequest) { r.ID = req.ID() })
		if mesh.RefusalOf(err) != mesh.RefusedToken {
			t.Errorf("another under its id: %v", err)
		}
		i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, made.Token
		i.Start()
		i.WaitReady()
		if got, _ := tokenOf(t, i, made.ID); got.Used != 1 || !slices.Equal(got.Nodes, []string{i.Name}) {
			t.Errorf("the token is %+v", got)
		}
	})
}
