package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
)

// List lists the nodes of the mesh, and those that have left it.
func (m *Member) List() []api.Member {
	s, leader := m.plan.State(), m.plan.Leader()
	roles := map[string]string{}
	for _, server := range m.plan.Servers() {
		roles[server.ID] = Role(server, leader)
	}
	list := make([]api.Member, 0, len(s.Members))
	for id, p := range s.Members {
		a := api.Member{Name: p.Name, ID: id, Status: string(mesh.Failed), Role: cmp.Or(roles[id], "nonvoter"), Device: p.Device, Version: p.Version, Shards: s.ShardsOwned(id)}
		if g, ok := m.mesh.Member(id); ok {
			a.Address, a.Status = g.Addr.String(), string(g.Status)
			a.Numbers = &api.Numbers{Wire: g.Numbers.Wire.String(), Disk: g.Numbers.Disk.String(), Computing: g.Numbers.Computing.String()}
			if p.Knows > 0 {
				a.Numbers.Plan = mesh.Range{Min: 1, Max: int(p.Knows)}.String()
			}
			a.Unlike = m.mesh.Unlike(id)
		}
		list = append(list, a)
	}
	for id, g := range s.Gone {
		if g.Why == plan.Left {
			list = append(list, api.Member{Name: g.Name, ID: id, Status: string(mesh.Left), Role: "nonvoter"})
		}
	}
	slices.SortFunc(list, func(a, b api.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Role returns the role of a Raft server for the API.
func Role(s plan.Server, leader string) string {
	switch {
	case s.ID == leader:
		return "leader"
	case s.Voter:
		return "voter"
	}
	return "nonvoter"
}

// Leave asks the leader to end this node's membership. Run returns ErrLeft when it has ended.
func (m *Member) Leave(ctx context.Context) error {
	m.leaving.Store(true)
	_, err := m.admission.leave.Do(ctx, lead.None{})
	if errors.Is(err, mesh.ErrUnauthorised) {
		return nil // it left so soon that the answer was cut off
	}
	if mesh.RefusalOf(err) != "" {
		m.leaving.Store(false) // after any other error the leader may have done it
	}
	return lead.APIError(err)
}

// nextToken is how long the token is valid that takes the place of those that end with a
// revoked node.
const nextToken = 24 * time.Hour

// ForceLeave removes another node. If tokens ended with it, it makes a new one.
func (m *Member) ForceLeave(ctx context.Context, r api.ForceLeaveRequest) (api.ForcedOut, error) {
	done, err := m.admission.forceLeave.Do(ctx, forceLeave{Node: r.Name, Revoke: r.Revoke})
	if err != nil {
		return api.ForcedOut{}, lead.APIError(err)
	}
	out := api.ForcedOut{Name: r.Name, OK: true, Tokens: done.Tokens, APITokens: done.API}
	out.Warning = done.warning()
	if len(done.Tokens) > 0 {
		t, err := m.invite(ctx, nextToken, 0, r.Name)
		if err != nil {
			m.cfg.Log.Warn("the tokens of a revoked node have ended, and a new one could not be made", "err", err)
			return out, nil // the node is out, which is what was asked for
		}
		out.Join, out.Expires = t.Join, t.Expires
	}
	return out, nil
}

// warning says what a revoked node may still do by the key of the mesh's CA, or "".
func (f forcedOut) warning() string {
	rotate := "run `hopmesh ca rotate` now"
	if f.Former {
		rotate = "run `hopmesh ca rotate` once `hopmesh ca show` says that no CA is being replaced any more: it may know the key of the former CA and that of the new one"
	}
	switch {
	case f.Voter:
		return "the node was a voter and holds the key of the mesh's CA, by which it can make certificates under other ids: if it is in wrong hands, " + rotate
	case f.Unsure:
		return "the node does not answer, and holds the key of the mesh's CA if it was ever a voter since that was made: if it may have been, and is in wrong hands, " + rotate
	case f.Former:
		return "the mesh is replacing its CA: if the node was ever a voter before, it holds the key of the former one, which is trusted until `hopmesh ca show` says that no CA is being replaced any more; watch `hopmesh members` for nodes that you do not know until then"
	}
	return ""
}

// CreateToken makes a token that admits nodes: so many, or any number if uses is 0. With a
// ttl of 0 it never expires.
func (m *Member) CreateToken(ctx context.Context, ttl time.Duration, uses uint64) (api.Token, error) {
	return m.invite(ctx, ttl, uses, "")
}

// invite makes a token whose join command does not send newcomers to one node, if it is named.
func (m *Member) invite(ctx context.Context, ttl time.Duration, uses uint64, not string) (api.Token, error) {
	made, err := m.admission.createToken.Do(ctx, tokenRequest{TTL: ttl, Uses: uses})
	if err != nil {
		return api.Token{}, lead.APIError(err)
	}
	t := api.Token{Token: made.Token, ID: made.ID, Join: fmt.Sprintf("hopmesh agent --join %s --token %s", strings.Join(m.seeds(not), " --join "), made.Token)}
	if !made.Expires.IsZero() {
		t.Expires = &made.Expires
	}
	return t, nil
}

// seeds returns the addresses for a join command: this node's, and one more so that
// the command still works when this node is down. That one is a member, since it gets to know the
// token, and not the one that is to go: gossip may see it for a while, and the plan be on its way.
func (m *Member) seeds(not string) []string {
	var own, others []string
	s := m.plan.State()
	for _, p := range m.mesh.Members() {
		member, in := s.Members[p.ID]
		switch {
		case p.ID == m.cfg.ID.ID():
			own = append(own, p.Addr.String())
		case p.Status == mesh.Alive && in && !member.Leaving && member.Name != not && p.ID != not:
			others = append(others, p.Addr.String())
		}
	}
	return append(own, others[:min(1, len(others))]...)
}

// Tokens lists the tokens that admit nodes.
func (m *Member) Tokens() []api.TokenInfo {
	list := []api.TokenInfo{}
	s := m.plan.State()
	for id, t := range s.Tokens {
		info := api.TokenInfo{ID: id, Created: t.Created, Used: t.Used, Nodes: s.JoinedBy(id)}
		if t.Owner != "" {
			info.Owner = s.NameOf(t.Owner)
		}
		if t.Uses > 0 {
			left := t.Uses - min(t.Used, t.Uses)
			info.Uses, info.Left = &t.Uses, &left
		}
		if !t.Expires.IsZero() {
			info.Expires = &t.Expires
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b api.TokenInfo) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list
}

// RevokeToken revokes a token.
func (m *Member) RevokeToken(ctx context.Context, id string) error {
	_, err := m.admission.revokeToken.Do(ctx, id)
	return lead.APIError(err)
}

// CA says which CA the mesh has, and which nodes have no certificate of it yet.
func (m *Member) CA(ctx context.Context) (api.CA, error) { return m.succession.state(ctx) }

// RotateCA begins to replace the mesh's CA.
func (m *Member) RotateCA(ctx context.Context) (api.CA, error) {
	if err := lead.Commit(ctx, m.succession.rotate, lead.None{}); err != nil {
		return api.CA{}, lead.APIError(err)
	}
	return m.CA(ctx)
}

// unlike returns a sentence about each node that speaks no version of this node's.
func (m *Member) unlike(s *plan.State) (list []string) {
	ids, known := m.mesh.Strangers(), m.mesh.Peers()
	for id := range s.Members {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if why := m.mesh.Unlike(id); why != "" {
			name := s.NameOf(id)
			if at := slices.IndexFunc(known, func(p mesh.Peer) bool { return p.ID == id }); at >= 0 && name == id {
				name += " at " + known[at].Addr.String()
			}
			list = append(list, fmt.Sprintf("node %s %s; until then neither does anything for the other", name, why))
		}
	}
	slices.Sort(list)
	return list
}

// Problems returns sentences about what is wrong with the mesh, and what to do about it.
func (m *Member) Problems(s *plan.State) []string {
	unlike := m.unlike(s)
	var list, dead, leaving, voters []string
	for _, server := range m.plan.Servers() {
		if server.Voter {
			voters = append(voters, s.NameOf(server.ID))
		}
	}
	if lack := m.plan.Lack(); lack != nil {
		list = append(list, fmt.Sprintf("this node takes no part in decisions, since it can't write to the plan's log (%v): make room, and it goes on by itself", lack))
	}
	if len(voters) == 0 && len(unlike) == 0 {
		list = append(list, "this node has not reached the mesh yet: it seeks its members where it knew them; if they have all moved, start it again with --join HOST:PORT of one")
	} else if len(voters) > 0 && m.orders.Leader() == "" {
		list = append(list, fmt.Sprintf("no leader has been heard from for %s, so what is known of the mesh is as old: %s, see `hopmesh recover --help`",
			m.plan.Silence().Truncate(time.Second), needed(voters)))
	}
	for id, p := range s.Members {
		if g, ok := m.mesh.Member(id); id != m.cfg.ID.ID() && (!ok || g.Status != mesh.Alive) && m.mesh.Unlike(id) == "" {
			dead = append(dead, p.Name)
		}
		if p.Leaving {
			leaving = append(leaving, fmt.Sprintf("node %s is leaving", p.Name))
		}
	}
	if len(dead) > 0 {
		slices.Sort(dead)
		list = append(list, fmt.Sprintf("not answering: %s; start it again, or `hopmesh force-leave NAME` if it is gone for good", strings.Join(dead, ", ")))
	}
	list = append(list, unlike...)
	if _, in := s.Members[m.cfg.ID.ID()]; !in {
		list = append(list, "this node is not in the plan yet: it is catching up")
	}
	slices.Sort(leaving)
	list = append(list, leaving...)
	if left := m.cfg.ID.NotAfter().Sub(m.cfg.ID.Now()); left < 7*24*time.Hour && left < m.cfg.ID.Life()/4 {
		list = append(list, fmt.Sprintf("this node's certificate ends in %s and could not be renewed: it needs a leader", left.Round(time.Minute)))
	}
	list = append(list, m.succession.problems(s, m.cfg.ID.Now())...)
	if s.Key.Stale {
		list = append(list, "a node was revoked and the gossip key is being replaced: live nodes that can't be reached hold this up")
	}
	return list
}

// needed says which voters must be up, and begins to say what else to do.
func needed(voters []string) string {
	if len(voters) == 1 {
		return fmt.Sprintf("%s, the only voter, must be up; if it is lost for good", voters[0])
	}
	return fmt.Sprintf("more than half of the %d voters must be up; if they are lost for good", len(voters))
}
