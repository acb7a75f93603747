package member

import (
	"context"
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
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
)

// The mesh's CA is replaced on an operator's order. The leader makes the new one, gives its key to
// each voter, and names it in the plan. Each node that reads that trusts both and renews its
// certificate. Once all members have, the leader retires the former CA, and the tokens that pin
// it. A member that is away holds that up until it is back or removed: it could prove itself to
// nobody any more. See mesh/identity for what makes nodes meet in between.

// successions replaces the mesh's CA: the order, the leader's part of the rest, and each node's.
type successions struct {
	id       *identity.Identity
	mesh     *mesh.Mesh
	plan     *consensus.Consensus
	contacts *contacts
	keys     *keyring
	log      *slog.Logger
	renew    chan struct{} // buffered: the certificate is due

	rotate *lead.Order[lead.None, lead.Index]
}

func newSuccessions(o *lead.Orders, c *contacts, k *keyring, log *slog.Logger) *successions {
	s := &successions{id: c.id, mesh: c.mesh, plan: c.plan, contacts: c, keys: k, log: log, renew: make(chan struct{}, 1)}
	s.rotate = lead.Register(o, "rotate-ca", lead.Once, s.onRotate)
	return s
}

// onRotate makes a new CA and names it in the plan.
func (c *successions) onRotate(ctx context.Context, _ string, _ lead.None) (lead.Index, error) {
	s := c.plan.State()
	switch {
	case !s.KnowsAuthorities():
		return 0, mesh.Refuse(lead.Conflict, "a node of the mesh runs a version that knows of no other CA than the first: upgrade all of them")
	case s.Authority != nil && s.Authority.Former:
		return 0, mesh.Refuse(lead.Conflict, "the CA is being replaced already: `hopmesh ca show` says which nodes that waits for")
	}
	if err := c.follow(s.Authority); err != nil {
		return 0, err
	}
	now := time.Now()
	next, key, err := c.id.NewSuccessor(now)
	if err != nil {
		return 0, err
	}
	for _, server := range c.plan.Servers() {
		if !server.Voter || server.ID == c.id.ID() {
			continue
		}
		if err := c.handNext(ctx, server.ID, key); err != nil {
			c.log.Info("handing out the key of a new CA", "to", server.ID, "err", err)
			return 0, mesh.Refuse(lead.Conflict, "node %s is a voter, which must be able to sign by the new CA, and does not answer: start it again, or remove it with `hopmesh force-leave`", s.NameOf(server.ID))
		}
	}
	if err := c.id.HoldNextCAKey(key); err != nil {
		return 0, err
	}
	serial := c.id.CASerial() + 1
	named, err := c.plan.Apply(ctx, plan.NameAuthority{Serial: serial, Cert: next.Cert, Link: next.Link, Now: now})
	if errors.Is(err, plan.ErrAuthorityTurning) || errors.Is(err, plan.ErrAuthoritySerial) {
		return 0, mesh.Refuse(lead.Conflict, "somebody else has just begun to replace the CA")
	}
	if err != nil {
		return 0, err
	}
	c.log.Warn("the mesh has a new CA", "serial", serial)
	return lead.Index(named.Index), nil
}

// handNext gives a voter the key of a new CA. It does not wait for one that does not answer.
func (c *successions) handNext(ctx context.Context, id string, key []byte) error {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	defer c.contacts.gossip.until(id, cancel)()
	return c.keys.hand(ctx, id, callNextCAKey, key)
}

// turn does one step in each of the leader's rounds: it gives a voter the key that it lacks, and
// retires the former CA when no member needs it any more.
func (c *successions) turn(ctx context.Context, s *plan.State) error {
	if !c.id.HasCAKey() {
		if err := c.fetch(ctx); err != nil {
			return err
		}
	}
	if s.Authority == nil || !s.Authority.Former || c.id.CASerial() != s.Authority.Serial {
		return nil
	}
	behind, err := c.behind(ctx, s, func(id string) error {
		if !c.voter(id) {
			return nil
		}
		return c.keys.sendCAKey(ctx, id)
	})
	if err != nil || len(behind) > 0 {
		return err
	}
	_, err = c.plan.Apply(ctx, plan.RetireAuthority{Serial: s.Authority.Serial})
	return err
}

// mayVote returns an error if a node may not become a voter yet: while the former CA is trusted, one
// that does not know it, since it joined by a token that pins the new one. As the leader it could
// not reach members that were away since before.
func (c *successions) mayVote(ctx context.Context, id string) error {
	s := c.plan.State()
	if s.Authority == nil || !s.Authority.Former {
		return nil
	}
	st, err := c.contacts.ask(ctx, id)
	if err == nil && !st.Former {
		err = fmt.Errorf("node %s will be a voter when the former CA has ended", s.NameOf(id))
	}
	return err
}

// fetch gets the CA's key from another voter, if this one leads without it: its file was lost, or it
// became a voter at the moment when the CA was replaced.
func (c *successions) fetch(ctx context.Context) error {
	var errs []error
	for _, server := range c.plan.Servers() {
		if !server.Voter || server.ID == c.id.ID() {
			continue
		}
		key, err := c.askKey(ctx, server.ID)
		if err == nil {
			err = c.id.AdoptCAKey(key)
		}
		if err == nil {
			c.log.Info("got the CA's key from another voter", "from", server.ID)
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("this node leads without the CA's key: %w", errors.Join(errs...))
}

func (c *successions) askKey(ctx context.Context, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	defer c.contacts.gossip.until(id, cancel)()
	return c.mesh.Call(ctx, id, callGiveCAKey, nil)
}

func (c *successions) voter(id string) bool {
	return slices.ContainsFunc(c.plan.Servers(), func(s plan.Server) bool { return s.ID == id && s.Voter })
}

// behind lists the members that have no certificate of the newest CA, as far as this node can
// tell. It calls keyless with each node that does not hold its key.
func (c *successions) behind(ctx context.Context, s *plan.State, keyless func(id string) error) (ids []string, err error) {
	live, want := c.contacts.live(s), hashText(c.id.CAHash())
	for id := range s.Members {
		if !slices.Contains(live, id) {
			ids = append(ids, id)
			continue
		}
		st, err := c.contacts.ask(ctx, id)
		if err == nil && !st.CAKey {
			if err := keyless(id); err != nil {
				return nil, err
			}
		}
		if err != nil || st.CA != want {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func hashText(hash [32]byte) string { return hex.EncodeToString(hash[:]) }

// follow does what the plan says of the CA.
func (c *successions) follow(a *plan.Authority) error {
	if a == nil {
		return nil
	}
	fresh, err := c.id.Succeed(identity.Successor{Cert: a.Cert, Link: a.Link})
	if err != nil {
		return fmt.Errorf("follow the mesh to its new CA: %w; move the data directory away, run `hopmesh force-leave` for this node on another one, and join anew", err)
	}
	if fresh {
		c.log.Warn("the mesh has a new CA; the former one is trusted until all nodes have new certificates", "serial", a.Serial)
	}
	if c.id.Outdated() {
		select {
		case c.renew <- struct{}{}:
		default: // it is due already
		}
	}
	if a.Former || a.Serial != c.id.CASerial() {
		return nil
	}
	retired, err := c.id.Retire()
	if retired {
		c.log.Warn("the former CA is not trusted any more", "serial", a.Serial)
		c.mesh.Distrust()
	}
	return err
}

// state says which CA the mesh has, and which nodes have no certificate of it yet.
func (c *successions) state(ctx context.Context) (api.CA, error) {
	s := c.plan.State()
	out := api.CA{Fingerprint: hashText(c.id.CAHash()), Key: c.id.HasCAKey()}
	a := s.Authority
	if a == nil {
		return out, nil
	}
	hash, err := identity.AuthorityHash(a.Cert)
	if err != nil {
		return api.CA{}, err
	}
	out.Fingerprint, out.Serial, out.Named, out.Replacing = hashText(hash), a.Serial, &a.Named, a.Former
	if !a.Former {
		return out, nil
	}
	behind, err := c.behind(ctx, s, func(string) error { return nil })
	for _, id := range behind {
		out.Waiting = append(out.Waiting, s.NameOf(id))
	}
	slices.Sort(out.Waiting)
	return out, err
}

// slowSuccession is after how long it is a problem that the former CA is still trusted.
const slowSuccession = time.Minute

// lasting returns a sentence if the mesh has trusted two CAs for long, or "".
func (c *successions) lasting(s *plan.State, now time.Time) string {
	if s.Authority == nil || !s.Authority.Former || now.Sub(s.Authority.Named) < slowSuccession {
		return ""
	}
	return fmt.Sprintf("the former CA is trusted for %s already, since nodes have no certificate of the new one: `hopmesh ca show` names them; start them again, or remove them with `hopmesh force-leave`",
		now.Sub(s.Authority.Named).Truncate(time.Second))
}
