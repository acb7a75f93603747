package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Each node accepts a token of the API, wherever it was made, until it ends: at its time, when it
// is revoked, or with a node that may have seen it. None admits a node, and no join token passes for
// one.
func TestTokensOfTheAPI(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		leader := c.Leader()
		others := c.Others(leader)
		grant := func(at *nodetest.Instance, scope, ttl string) api.AccessToken {
			t.Helper()
			made, err := at.API().GrantAccess(t.Context(), api.AccessRequest{Scope: scope, TTL: ttl, Name: "ci"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := at.API().Scope(made.Token); err != nil || got != scope {
				t.Errorf("where it was made it is %q: %v", got, err)
			}
			return made
		}
		everywhere := func(what string, made api.AccessToken, want, says string) {
			t.Helper()
			c.Wait(what, time.Minute, func() bool {
				for _, at := range append(others, leader) {
					got, err := at.API().Scope(made.Token)
					if got != want || (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
						return false
					}
				}
				return true
			})
		}
		read, operate := grant(leader, api.ScopeRead, "2m"), grant(others[0], api.ScopeOperate, "")
		everywhere("all accept the one", read, api.ScopeRead, "")
		everywhere("all accept the other", operate, api.ScopeOperate, "")
		if operate.Expires != nil || read.Expires == nil || !strings.HasPrefix(read.Token, "hma1-") {
			t.Errorf("%+v, %+v", read, operate)
		}
		list, err := others[1].API().Access(t.Context())
		if err != nil || len(list) != 2 || list[0].Name != "ci" || list[0].Scope == list[1].Scope {
			t.Errorf("%+v, %v", list, err)
		}
		// The secret of one kind, written as the other, is unknown.
		secret, err := identity.ParseAPIToken(operate.Token)
		if err != nil {
			t.Fatal(err)
		}
		if err := newcomer(t, c, leader, identity.Token(secret).String(), "intruder", nil); mesh.RefusalOf(err) != mesh.RefusedToken {
			t.Errorf("it joins by a token of the API: %v", err)
		}
		join, err := identity.ParseToken(leader.Token())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{join.String(), identity.APIToken(join).String()} {
			if _, err := leader.API().Scope(text); err == nil || !strings.Contains(err.Error(), "`hopmesh api token create`") {
				t.Errorf("a join token passes: %v", err)
			}
		}
		c.Wait("its time is over", 5*time.Minute, func() bool { _, err := leader.API().Scope(read.Token); return err != nil })
		everywhere("it has expired", read, "", "has expired")
		if err := others[1].API().RevokeAccess(t.Context(), operate.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := others[1].API().Scope(operate.Token); err == nil {
			t.Error("where it was revoked it is accepted")
		}
		everywhere("it is revoked", operate, "", "not known here")
		if err := leader.API().RevokeAccess(t.Context(), operate.ID); err == nil || !strings.Contains(err.Error(), "`hopmesh api token list`") {
			t.Errorf("revoked twice: %v", err)
		}
		if _, err := leader.API().GrantAccess(t.Context(), api.AccessRequest{Scope: api.ScopeRead, Name: "\x1b[31m"}); err == nil {
			t.Error("a name of colours is in the plan")
		}
		last := grant(others[1], api.ScopeOperate, "")
		out, err := leader.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: others[0].Name, Revoke: true})
		if err != nil || len(out.APITokens) == 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		others = others[1:]
		everywhere("it ended with the node", last, "", "not known here")
	})
}
