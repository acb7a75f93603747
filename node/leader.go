package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"crypto/sha256"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// maxSkew is how far a newcomer's clock may be off. Certificates are valid from
// an hour before they are signed.
const maxSkew = 10 * time.Minute

// admit is what the mesh asks when a newcomer comes to this node.
func (m *member) admit(ctx context.Context, r mesh.JoinRequest) (identity.Grant, error) {
	var g identity.Grant
	if !m.isOpen() {
		return g, mesh.Refuse(mesh.RefusedLater, "this node is still starting")
	}
	err := m.atLeader(ctx, opAdmit, r, &g)
	if errors.Is(err, errNoLeader) {
		return g, mesh.Refuse(mesh.RefusedLater, "%v", err)
	}
	return g, err
}

// leaderAdmit judges a newcomer. The order matters: nothing is said of names to
// one who has no valid token, and the plan knows the newcomer before it gets a
// certificate, so that no two nodes ever hold one name.
func (m *member) leaderAdmit(ctx context.Context, r mesh.JoinRequest) (identity.Grant, error) {
	now := time.Now()
	secret, err := hex.DecodeString(r.Secret)
	if err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedToken, "the token is damaged; copy it again")
	}
	sum := sha256.Sum256(secret)
	if err := m.plan.State().CheckToken(hex.EncodeToString(sum[:]), now); err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedToken, "%v", err)
	}
	if skew := r.Clock.Sub(now).Round(time.Second); skew.Abs() > maxSkew {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedClock,
			"its clock says %s, the mesh's says %s: they may differ by %s at most; set the clock (NTP) and try again",
			r.Clock.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), maxSkew)
	}
	if err := errors.Join(identity.CheckID(r.ID), mesh.CheckName(r.Name)); err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedRequest, "%v", err)
	}
	if _, gone := m.plan.State().Gone[r.ID]; gone {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedName, "%v", plan.ErrGone)
	}
	key, err := identity.CSRKeyHash(r.CSR)
	if err != nil {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedRequest, "its certificate request can't be read: %v", err)
	}
	s, err := m.plan.Apply(ctx, plan.AddMember{Member: plan.Member{
		ID: r.ID, Name: r.Name, Device: r.Device, Version: r.Version, Memory: r.Memory, PublicKey: key,
	}})
	switch {
	case errors.Is(err, plan.ErrNameTaken), errors.Is(err, plan.ErrIDTaken), errors.Is(err, plan.ErrGone):
		return identity.Grant{}, mesh.Refuse(mesh.RefusedName, "%v", err)
	case err != nil:
		return identity.Grant{}, err
	}
	chain, err := m.id.Sign(r.CSR, r.ID, now)
	if err != nil {
		return identity.Grant{}, fmt.Errorf("sign the certificate of %s: %w", r.Name, err)
	}
	m.plan.Hint()
	m.log.Info("admitted a node", "name", r.Name, "id", r.ID)
	g := identity.Grant{MeshID: m.id.MeshID(), Chain: chain, Keys: m.id.GossipKeys()}
	for _, p := range m.mesh.Members() {
		if _, in := s.Members[p.ID]; in && p.Status == mesh.Alive && p.ID != r.ID {
			g.Peers = append(g.Peers, identity.Peer{ID: p.ID, Name: p.Name, Addr: p.Addr.String()})
		}
	}
	return g, nil
}

type tokenOrder struct {
	TTL time.Duration `json:"ttl"` // 0: for ever
}

type tokenAnswer struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

func (m *member) leaderCreateToken(ctx context.Context, o tokenOrder) (tokenAnswer, error) {
	token, err := identity.NewToken(m.id.CAHash())
	if err != nil {
		return tokenAnswer{}, err
	}
	now := time.Now()
	t := plan.NewToken(token.Hash(), now, o.TTL)
	if _, err := m.plan.Apply(ctx, plan.CreateToken{Token: t, Now: now}); err != nil {
		return tokenAnswer{}, err
	}
	return tokenAnswer{Token: token.String(), ID: t.ID, Expires: t.Expires}, nil
}

func (m *member) leaderRevokeToken(ctx context.Context, id string) (none, error) {
	_, err := m.plan.Apply(ctx, plan.RevokeToken{ID: id})
	if errors.Is(err, plan.ErrTokenUnknown) {
		return none{}, mesh.Refuse(reasonNotFound, "no token %s: `hopmesh token list` shows those there are", id)
	}
	return none{}, err
}

func (m *member) leaderLeave(ctx context.Context, id string) (none, error) {
	s := m.plan.State()
	if len(s.Members) == 1 {
		return none{}, mesh.Refuse(reasonConflict, "this is the last node of its mesh: there is nobody to give its share to; stop it, and remove its data directory to end the mesh")
	}
	if _, err := m.plan.Apply(ctx, plan.SetLeaving{ID: id}); err != nil {
		return none{}, err
	}
	m.plan.Hint()
	return none{}, nil
}

type forceLeaveOrder struct {
	Node   string `json:"node"` // name or id
	Revoke bool   `json:"revoke"`
}

// leaderForceLeave removes a node on an operator's word. Without revocation only
// a failed one: a live one would be back at once.
func (m *member) leaderForceLeave(ctx context.Context, o forceLeaveOrder) (none, error) {
	s := m.plan.State()
	id, why := m.findNode(s, o.Node), plan.Removed
	if o.Revoke {
		why = plan.Revoked
	}
	if id == "" {
		return none{}, mesh.Refuse(reasonNotFound, "no node is called %s, nor has that id: `hopmesh members` lists them", o.Node)
	}
	if id == m.id.ID() {
		if err := m.plan.HandOver(ctx); err != nil {
			return none{}, mesh.Refuse(reasonConflict, "node %s leads the mesh and nobody can take over: %v", nameOf(s, id), err)
		}
		return none{}, mesh.Refuse(reasonNotLeader, "node %s no longer leads", m.id.Name())
	}
	if p, ok := m.mesh.Member(id); ok && p.Status == mesh.Alive && !o.Revoke {
		return none{}, mesh.Refuse(reasonConflict, "node %s is alive: run `hopmesh leave` on it, or pass --revoke to shut it out for good", nameOf(s, id))
	}
	if _, err := m.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: why}); err != nil {
		return none{}, err
	}
	m.log.Warn("removed a node on request", "name", nameOf(s, id), "id", id, "revoked", o.Revoke)
	m.plan.Hint()
	return none{}, nil
}

// findNode accepts names and ids, of members, of those that are gone, and of
// those that only gossip or Raft remembers.
func (m *member) findNode(s *plan.State, nameOrID string) string {
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
	for _, p := range m.mesh.Members() {
		if p.ID == nameOrID || p.Name == nameOrID {
			return p.ID
		}
	}
	for _, server := range m.plan.Servers() {
		if server.ID == nameOrID {
			return server.ID
		}
	}
	return ""
}
