package member

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/lead"
)

// admission holds the orders about membership. Each is a field, which any node may call,
// and a method, which the leader runs.
type admission struct {
	id   *identity.Identity
	mesh *mesh.Mesh
	plan *consensus.Consensus
	// succession says which CA new tokens pin, and when the certificate is due.
	succession *successions
	log        *slog.Logger

	admit       *lead.Order[mesh.JoinRequest, identity.Grant]
	sign        *lead.Order[[]byte, [][]byte]
	createToken *lead.Order[tokenRequest, newToken]
	revokeToken *lead.Order[string, lead.None]
	leave       *lead.Order[lead.None, lead.None]
	forceLeave  *lead.Order[forceLeave, forcedOut]
	rejoin      *lead.Order[lead.None, lead.None] // given by nodes that know no leader: see Rejoin
}

func admissions(o *lead.Orders, id *identity.Identity, m *mesh.Mesh, p *consensus.Consensus, s *successions, log *slog.Logger) *admission {
	a := &admission{id: id, mesh: m, plan: p, succession: s, log: log}
	a.admit = lead.Register(o, "admit", lead.Once, a.onAdmit)
	a.sign = lead.Register(o, "renew", lead.Once, a.onSign)
	a.createToken = lead.Register(o, "create-token", lead.Once, a.onCreateToken)
	a.revokeToken = lead.Register(o, "revoke-token", lead.Once, a.onRevokeToken)
	a.leave = lead.Register(o, "leave", lead.Once, a.onLeave)
	a.forceLeave = lead.Register(o, "force-leave", lead.Once, a.onForceLeave)
	a.rejoin = lead.Register(o, orderRejoin, lead.Repeatable, a.onRejoin)
	return a
}

// maxSkew is how far a newcomer's clock may be off. Certificates are valid from
// an hour before they are signed.
const maxSkew = 10 * time.Minute

// onAdmit decides on a newcomer. The sequence matters. A newcomer without a valid token
// learns nothing about names, and the plan knows the newcomer before it gets a
// certificate, so that no two nodes ever have the same name. from is the node that the
// newcomer asked, which has seen its token.
func (a *admission) onAdmit(ctx context.Context, from string, r mesh.JoinRequest) (identity.Grant, error) {
	now := a.id.Now()
	secret, err := hex.DecodeString(r.Secret)
	if err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedToken, "the token is damaged; copy it again")
	}
	sum := sha256.Sum256(secret)
	hash := hex.EncodeToString(sum[:])
	key, keyErr := identity.CSRKeyHash(r.CSR)
	known := a.plan.State()
	err = known.CheckToken(hash, now)
	if errors.Is(err, plan.ErrTokenUsedUp) && keyErr == nil && known.Admitted(r.ID, key, hash) {
		err = nil // it took one of the uses itself, and asks again after a crash
	}
	if err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedToken, "%v", err)
	}
	if skew := r.Clock.Sub(now).Round(time.Second); skew.Abs() > maxSkew {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedClock,
			"its clock says %s, the mesh's says %s: they may differ by %s at most; set the clock (NTP) and try again",
			r.Clock.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), maxSkew)
	}
	if err := a.mesh.CheckNewcomer(r); err != nil {
		return identity.Grant{}, err
	}
	if cmp.Or(Knows(r.Numbers), plan.Silent) < known.Needed() {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedVersion, "the mesh has made use of what this node's version of hopmesh does not know: install the one that node %s runs (%s), or a later one", a.id.Name(), known.Members[a.id.ID()].Version)
	}
	if err := errors.Join(identity.CheckID(r.ID), mesh.CheckName(r.Name)); err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedRequest, "%v", err)
	}
	if _, gone := a.plan.State().Gone[r.ID]; gone {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedName, "%v", plan.ErrGone)
	}
	if keyErr != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedRequest, "its certificate request can't be read: %v", keyErr)
	}
	newcomer := plan.Member{
		ID: r.ID, Name: r.Name, Device: r.Device, Version: r.Version, Computes: Computing(r.Numbers), Memory: r.Memory, PublicKey: key,
		Knows: Knows(r.Numbers),
	}
	var join plan.Command = plan.AddMember{Member: newcomer}
	if known.BindsTokens() {
		join = plan.Admit{Member: newcomer, Token: plan.TokenID(hash), Now: now, Seen: []string{from, a.id.ID()}}
	}
	s, err := a.plan.Apply(ctx, join)
	switch {
	case errors.Is(err, plan.ErrTokenUnknown), errors.Is(err, plan.ErrTokenExpired), errors.Is(err, plan.ErrTokenUsedUp):
		return identity.Grant{}, mesh.Refuse(mesh.RefusedToken, "%v", err)
	case errors.Is(err, plan.ErrNameTaken), errors.Is(err, plan.ErrIDTaken), errors.Is(err, plan.ErrGone):
		return identity.Grant{}, mesh.Refuse(mesh.RefusedName, "%v", err)
	case err != nil:
		return identity.Grant{}, err
	}
	chain, err := a.id.Sign(r.CSR, r.ID, now)
	if err != nil {
		return identity.Grant{}, fmt.Errorf("sign the certificate of %s: %w", r.Name, err)
	}
	a.plan.Hint()
	a.log.Info("admitted a node", "name", r.Name, "id", r.ID)
	g := identity.Grant{MeshID: a.id.MeshID(), Chain: chain, Keys: a.id.GossipKeys()}
	for _, p := range a.mesh.Members() {
		if _, in := s.Members[p.ID]; in && p.Status == mesh.Alive && p.ID != r.ID {
			g.Peers = append(g.Peers, identity.Peer{ID: p.ID, Name: p.Name, Addr: p.Addr.String()})
		}
	}
	return g, nil
}

// onSign renews a member's certificate, by the CA that the plan has named last. Who has a certificate
// but is no member gets no other.
func (a *admission) onSign(_ context.Context, from string, csr []byte) ([][]byte, error) {
	s := a.plan.State()
	if _, in := s.Members[from]; !in {
		return nil, mesh.Refuse(lead.Conflict, "node %s is no member", from)
	}
	if err := a.succession.follow(s.Authority); err != nil {
		return nil, err
	}
	return a.id.Sign(csr, from, a.id.Now())
}

type tokenRequest struct {
	TTL  time.Duration `json:"ttl"`            // 0: never expires
	Uses uint64        `json:"uses,omitempty"` // 0: any number
}

type newToken struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

func (a *admission) onCreateToken(ctx context.Context, from string, o tokenRequest) (newToken, error) {
	if o.Uses > 0 && !a.plan.State().BindsTokens() {
		return newToken{}, mesh.Refuse(lead.Conflict, "a node of the mesh runs a version that does not count how often a token is used: upgrade all of them, or leave out --uses")
	}
	// The token must pin the CA that the plan has named last, or it would end with the former one.
	s := a.plan.State()
	if err := a.succession.follow(s.Authority); err != nil {
		return newToken{}, err
	}
	token, err := identity.NewToken(a.id.CAHash())
	if err != nil {
		return newToken{}, err
	}
	now := a.id.Now()
	t := plan.NewToken(token.Hash(), now, o.TTL)
	t.Owner, t.Uses, t.Seen, t.Authority = from, o.Uses, []string{a.id.ID()}, a.id.CASerial()
	_, err = a.plan.Apply(ctx, plan.CreateToken{Token: t, Now: now})
	if errors.Is(err, plan.ErrAuthoritySerial) {
		return newToken{}, mesh.Refuse(lead.Conflict, "the mesh has got a new CA at this moment: ask again for a token that pins it")
	}
	if err != nil {
		return newToken{}, err
	}
	return newToken{Token: token.String(), ID: t.ID, Expires: t.Expires}, nil
}

func (a *admission) onRevokeToken(ctx context.Context, _, id string) (lead.None, error) {
	_, err := a.plan.Apply(ctx, plan.RevokeToken{ID: id})
	if errors.Is(err, plan.ErrTokenUnknown) {
		return lead.None{}, mesh.Refuse(lead.NotFound, "no token %s: `hopmesh token list` shows those there are", id)
	}
	return lead.None{}, err
}

func (a *admission) onLeave(ctx context.Context, id string, _ lead.None) (lead.None, error) {
	s := a.plan.State()
	if len(s.Members) == 1 {
		return lead.None{}, mesh.Refuse(lead.Conflict, "this is the last node of its mesh: there is nobody to give its share to; stop it, and remove its data directory to end the mesh")
	}
	if _, err := a.plan.Apply(ctx, plan.SetLeaving{ID: id}); err != nil {
		return lead.None{}, err
	}
	a.plan.Hint()
	return lead.None{}, nil
}

type forceLeave struct {
	Node   string `json:"node"` // name or id
	Revoke bool   `json:"revoke"`
}

// forcedOut is what came of removing a node.
type forcedOut struct {
	Tokens []string `json:"tokens,omitempty"` // ids of those that ended with it
	API    []string `json:"api,omitempty"`    // the same of tokens of the API
	Voter  bool     `json:"voter,omitempty"`  // it was revoked and holds the CA's key, as voters do
	Unsure bool     `json:"unsure,omitempty"` // it was revoked and may have voted once: it does not answer
	Former bool     `json:"former,omitempty"` // it was revoked while two CAs are trusted
}

// onForceLeave removes a node on an operator's request. Without revocation it removes
// only a failed node, since a live one would be back at once. With it, the tokens that
// the node may know end, since it could join anew by them.
func (a *admission) onForceLeave(ctx context.Context, _ string, o forceLeave) (forcedOut, error) {
	s := a.plan.State()
	id, why := a.findNode(s, o.Node), plan.Removed
	if o.Revoke {
		why = plan.Revoked
	}
	if id == "" {
		return forcedOut{}, mesh.Refuse(lead.NotFound, "no node is called %s, nor has that id: `hopmesh members` lists them", o.Node)
	}
	if id == a.id.ID() {
		if err := a.plan.HandOver(ctx); err != nil {
			return forcedOut{}, mesh.Refuse(lead.Conflict, "node %s leads the mesh and nobody can take over: %v", s.NameOf(id), err)
		}
		return forcedOut{}, mesh.Refuse(lead.NotLeader, "node %s no longer leads", a.id.Name())
	}
	if p, ok := a.mesh.Member(id); ok && p.Status == mesh.Alive && !o.Revoke {
		return forcedOut{}, mesh.Refuse(lead.Conflict, "node %s is alive: run `hopmesh leave` on it, or pass --revoke to shut it out for good", s.NameOf(id))
	}
	var out forcedOut
	if o.Revoke {
		out.Voter, out.Unsure = a.succession.holds(ctx, id)
		out.Former = s.Authority != nil && s.Authority.Former
	}
	before := a.plan.State()
	after, err := a.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: why, Tokens: o.Revoke})
	if err != nil {
		return forcedOut{}, err
	}
	if o.Revoke {
		out.Tokens, out.API = missing(before.Tokens, after.Tokens), missing(before.Access, after.Access)
	}
	a.log.Warn("removed a node on request", "name", s.NameOf(id), "id", id, "revoked", o.Revoke, "tokens", out.Tokens, "api_tokens", out.API)
	a.plan.Hint()
	return out, nil
}

// missing lists the ids of the tokens that are in one plan and no more in a later one, sorted. A
// node that was revoked before ends none.
func missing[T any](before, after map[string]T) []string {
	var ids []string
	for id := range before {
		if _, in := after[id]; !in {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// findNode finds the id of a node by its name or id, among members, nodes that are
// gone, and nodes that only gossip or Raft remembers.
func (a *admission) findNode(s *plan.State, nameOrID string) string {
	if p, ok := s.MemberByName(nameOrID); ok {
		return p.ID
	}
	if _, ok := s.Members[nameOrID]; ok {
		return nameOrID
	}
	for id, g := range s.Gone {
		if id == nameOrID || g.Name == nameOrID {
			return id
		}
	}
	for _, p := range a.mesh.Members() {
		if p.ID == nameOrID || p.Name == nameOrID {
			return p.ID
		}
	}
	for _, server := range a.plan.Servers() {
		if server.ID == nameOrID {
			return server.ID
		}
	}
	return ""
}
