package member

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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
	rotating sync.Mutex    // one order at a time hands out a key

	mu     sync.Mutex
	failed error // why this node can't follow the plan to its CA

	rotate *lead.Order[lead.None, lead.Index]
}

func newSuccessions(o *lead.Orders, c *contacts, k *keyring, log *slog.Logger) *successions {
	s := &successions{id: c.id, mesh: c.mesh, plan: c.plan, contacts: c, keys: k, log: log, renew: make(chan struct{}, 1)}
	s.rotate = lead.Register(o, "rotate-ca", lead.Once, s.onRotate)
	return s
}

// onRotate makes a new CA and names it in the plan.
func (c *successions) onRotate(ctx context.Context, _ string, _ lead.None) (lead.Index, error) {
	if !c.rotating.TryLock() {
		return 0, mesh.Refuse(lead.Conflict, "the CA is being replaced already by somebody else")
	}
	defer c.rotating.Unlock()
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
	now := c.id.Now()
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
	named, err := c.plan.Apply(ctx, plan.NameAuthority{Serial: next.Serial, Cert: next.Cert, Link: next.Link, Now: now})
	if errors.Is(err, plan.ErrAuthorityTurning) || errors.Is(err, plan.ErrAuthoritySerial) {
		return 0, mesh.Refuse(lead.Conflict, "somebody else has just begun to replace the CA")
	}
	if err != nil {
		return 0, err
	}
	// Whatever the voters keep by now, this node has the key, and gives it to those that lack it.
	if err := c.follow(named.Authority); err != nil {
		return 0, err
	}
	return lead.Index(named.Index), c.id.AdoptCAKey(key)
}

// handNext gives a voter the key of a new CA. It does not wait for one that does not answer.
func (c *successions) handNext(ctx context.Context, id string, key []byte) error {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	defer c.contacts.gossip.until(id, cancel)()
	return c.keys.hand(ctx, id, callNextCAKey, key)
}

// turn does one step in each of the leader's rounds: it retires the former CA when no member needs it
// any more. One that leads without the CA's key, since its file was lost, lets another voter lead,
// which gives it the key.
func (c *successions) turn(ctx context.Context, s *plan.State) error {
	if !c.id.HasCAKey() {
		return c.letLead(ctx, s)
	}
	if s.Authority == nil || !s.Authority.Former || c.id.CASerial() != s.Authority.Serial {
		return nil
	}
	behind, err := c.behind(ctx, s, func(id string, st stats) error { return c.equip(ctx, id, st) })
	if err != nil || len(behind) > 0 {
		return err
	}
	_, err = c.plan.Apply(ctx, plan.RetireAuthority{Serial: s.Authority.Serial})
	return err
}

// equip gives a voter the CA's key that it says to lack.
func (c *successions) equip(ctx context.Context, id string, st stats) error {
	if st.CAKey || !c.id.HasCAKey() || !votes(c.plan, id) || id == c.id.ID() {
		return nil
	}
	return c.keys.sendCAKey(ctx, id)
}

// letLead hands leadership over to a voter that answers and holds the CA's key.
func (c *successions) letLead(ctx context.Context, s *plan.State) error {
	for _, id := range c.contacts.live(s) {
		if !votes(c.plan, id) {
			continue
		}
		if st, err := c.contacts.ask(ctx, id); err == nil && st.CAKey {
			return c.plan.HandOverTo(ctx, id)
		}
	}
	return errors.New("this node leads without the CA's key, and no voter that answers has it")
}

// holds reports whether a node holds the key of the CA: each voter does, and one that voted once says
// so itself. unsure: it does not answer.
func (c *successions) holds(ctx context.Context, id string) (key, unsure bool) {
	if votes(c.plan, id) {
		return true, false
	}
	st, err := c.contacts.ask(ctx, id)
	return err == nil && st.CAKey, err != nil
}

// mayVote returns an error if a node may not become a voter yet: while the former CA is trusted, one
// that does not know it, since it joined by a token that pins the new one. As the leader it could
// not reach members that were away since before.
func (c *successions) mayVote(s *plan.State, id string, st stats) error {
	if s.Authority == nil || !s.Authority.Former || st.Former || votes(c.plan, id) {
		return nil
	}
	return fmt.Errorf("node %s will be a voter when the former CA has ended", s.NameOf(id))
}

// behind lists the members that have no certificate of the newest CA, as far as this node can
// tell. It calls heard with what each node says of itself.
func (c *successions) behind(ctx context.Context, s *plan.State, heard func(id string, st stats) error) (ids []string, err error) {
	live, want := c.contacts.live(s), hashText(c.id.CAHash())
	for id := range s.Members {
		if !slices.Contains(live, id) {
			ids = append(ids, id)
			continue
		}
		st, err := c.contacts.ask(ctx, id)
		if err == nil {
			if err := heard(id, st); err != nil {
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
		return fmt.Errorf("follow the mesh to its new CA: %w", err)
	}
	if fresh {
		c.log.Warn("the mesh has a new CA; the former one is trusted until all nodes have new certificates", "serial", a.Serial)
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
	behind, err := c.behind(ctx, s, func(string, stats) error { return nil })
	for _, id := range behind {
		out.Waiting = append(out.Waiting, s.NameOf(id))
	}
	slices.Sort(out.Waiting)
	return out, err
}

// take does what a version of the plan says of the CA. It must not end the node: what fails is tried
// again with the next version, and is a problem meanwhile.
func (c *successions) take(was, now *plan.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was != nil && was.Authority == now.Authority && c.failed == nil {
		return
	}
	before := c.failed
	c.failed = c.follow(now.Authority)
	if c.failed != nil && before == nil {
		c.log.Error("the mesh has another CA", "err", c.failed)
	}
}

// problems returns sentences about what is wrong.
func (c *successions) problems(s *plan.State, now time.Time) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(c.failed, identity.ErrSuccessor):
		list = append(list, fmt.Sprintf("this node can't %v: move its data directory away, run `hopmesh force-leave` for it on another node, and join anew", c.failed))
	case c.failed != nil:
		list = append(list, fmt.Sprintf("this node can't %v; it tries again", c.failed))
	}
	if why := c.lasting(s, now); why != "" {
		list = append(list, why)
	}
	return list
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
