package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
)

// Backend is what the node offers through its API.
func (n *Node) Backend() api.Backend { return backend{n} }

// backend answers the API. What only reads is answered from local state, leader
// or not.
type backend struct{ node *Node }

var _ api.Backend = backend{}

// in returns the membership, or why there is none.
func (b backend) in() (*member, error) {
	if m := b.node.member.Load(); m != nil {
		return m, nil
	}
	return nil, api.Unavailable("this node is in no mesh: run `hopmesh join HOST:PORT --token TOKEN`, with what `hopmesh token create` prints on a member")
}

func (b backend) Members(context.Context) ([]api.Member, error) {
	m, err := b.in()
	if err != nil {
		return nil, err
	}
	s, leader := m.plan.State(), m.plan.Leader()
	roles := map[string]string{}
	for _, server := range m.plan.Servers() {
		roles[server.ID] = role(server, leader)
	}
	list := make([]api.Member, 0, len(s.Members))
	for id, p := range s.Members {
		a := api.Member{Name: p.Name, ID: id, Status: string(mesh.Failed), Role: cmp.Or(roles[id], "nonvoter"), Device: p.Device, Version: p.Version, Shards: s.ShardsOwned(id)}
		if g, ok := m.mesh.Member(id); ok {
			a.Address, a.Status = g.Addr.String(), string(g.Status)
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
	return list, nil
}

func role(s plan.Server, leader string) string {
	switch {
	case s.ID == leader:
		return "leader"
	case s.Voter:
		return "voter"
	}
	return "nonvoter"
}

func (b backend) Plan(context.Context) (api.Plan, error) {
	m, err := b.in()
	if err != nil {
		return api.Plan{}, err
	}
	s, leader := m.plan.State(), m.plan.Leader()
	p := api.Plan{
		Index: s.Index, Generation: s.Generation, MeshID: s.MeshID, Leader: nameOf(s, leader), Tokens: len(s.Tokens),
		Key: api.PlanKey{Serial: s.Key.Serial, Rotating: s.Key.Previous != "" || s.Key.Stale}, Digest: s.Digest(),
	}
	servers := map[string]plan.Server{}
	for _, server := range m.plan.Servers() {
		servers[server.ID] = server
	}
	for id, x := range s.Members {
		p.Members = append(p.Members, api.PlanMember{
			ID: id, Name: x.Name, Role: role(servers[id], leader), Device: x.Device, Version: x.Version, Memory: x.Memory, Leaving: x.Leaving,
		})
	}
	slices.SortFunc(p.Members, func(a, b api.PlanMember) int { return cmp.Compare(a.Name, b.Name) })
	for id, g := range s.Gone {
		p.Gone = append(p.Gone, api.PlanGone{ID: id, Name: g.Name, Why: string(g.Why)})
	}
	p.Jobs = m.jobSummaries(s, func(plan.Job) bool { return true })
	for i := range p.Jobs {
		p.Jobs[i].Owners = s.Jobs[p.Jobs[i].ID].Owners
	}
	slices.SortFunc(p.Gone, func(a, b api.PlanGone) int { return cmp.Compare(a.ID, b.ID) })
	return p, nil
}

func (b backend) Join(ctx context.Context, r api.JoinRequest) error {
	if b.node.member.Load() != nil {
		return api.Conflict("this node is in a mesh already: `hopmesh leave` ends that")
	}
	token, err := identity.ParseToken(r.Token)
	if err != nil {
		return api.Invalid("%v", err)
	}
	if len(r.Peers) == 0 {
		return api.Invalid("no HOST:PORT of a member was given")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	o := joinOrder{ctx: ctx, peers: r.Peers, token: token, done: make(chan error, 1)}
	select {
	case b.node.orders <- o:
	case <-ctx.Done():
		return api.Unavailable("this node is busy with another join")
	}
	select {
	case err = <-o.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return api.Conflict("%v", err)
	}
	return nil
}

func (b backend) Leave(ctx context.Context) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	m.leaving.Store(true)
	err = m.atLeader(ctx, opLeave, none{}, nil)
	if errors.Is(err, mesh.ErrUnauthorised) {
		return nil // let go so soon that the answer was cut off
	}
	if mesh.RefusalOf(err) != "" {
		m.leaving.Store(false) // any other error leaves open whether it was heard
	}
	return apiError(err)
}

func (b backend) ForceLeave(ctx context.Context, r api.ForceLeaveRequest) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	return apiError(m.atLeader(ctx, opForceLeave, forceLeaveOrder{Node: r.Name, Revoke: r.Revoke}, nil))
}

func (b backend) CreateToken(ctx context.Context, ttl time.Duration) (api.Token, error) {
	m, err := b.in()
	if err != nil {
		return api.Token{}, err
	}
	var a tokenAnswer
	if err := m.atLeader(ctx, opCreateToken, tokenOrder{TTL: ttl}, &a); err != nil {
		return api.Token{}, apiError(err)
	}
	t := api.Token{Token: a.Token, ID: a.ID, Join: fmt.Sprintf("hopmesh agent --join %s --token %s", strings.Join(m.seeds(), " --join "), a.Token)}
	if !a.Expires.IsZero() {
		t.Expires = &a.Expires
	}
	return t, nil
}

// seeds are the addresses to put into a join command: this node's, and one more
// so that the command still works when this node is away.
func (m *member) seeds() []string {
	var own, others []string
	for _, p := range m.mesh.Members() {
		switch {
		case p.ID == m.id.ID():
			own = append(own, p.Addr.String())
		case p.Status == mesh.Alive:
			others = append(others, p.Addr.String())
		}
	}
	return append(own, others[:min(1, len(others))]...)
}

func (b backend) Tokens(context.Context) ([]api.TokenInfo, error) {
	m, err := b.in()
	if err != nil {
		return nil, err
	}
	list := []api.TokenInfo{}
	for id, t := range m.plan.State().Tokens {
		info := api.TokenInfo{ID: id, Created: t.Created}
		if !t.Expires.IsZero() {
			info.Expires = &t.Expires
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b api.TokenInfo) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

func (b backend) RevokeToken(ctx context.Context, id string) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	return apiError(m.atLeader(ctx, opRevokeToken, id, nil))
}

func (b backend) Events(ctx context.Context) <-chan api.Event { return b.node.events.listen(ctx) }

func (b backend) Logs(ctx context.Context, level slog.Level) <-chan api.LogLine {
	out := make(chan api.LogLine)
	in := b.node.logs.listen(ctx)
	go func() {
		defer close(out)
		for l := range in {
			if l.level < level {
				continue
			}
			select {
			case out <- l.line:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// apiError gives a refusal the status that HTTP has for its reason.
func apiError(err error) error {
	if err == nil {
		return nil
	}
	switch mesh.RefusalOf(err) {
	case reasonNotFound:
		return api.NotFound("%s", refusalText(err))
	case reasonConflict:
		return api.Conflict("%s", refusalText(err))
	case reasonInvalid:
		return api.Invalid("%s", refusalText(err))
	}
	return api.Unavailable("%v", err)
}

func refusalText(err error) string {
	r, _ := errors.AsType[*mesh.Refusal](err)
	return r.Message
}
