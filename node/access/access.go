// Package access makes, lists and revokes the tokens by which the API is used from other machines,
// and says what who shows one may do. The plan holds them, so every node accepts each.
package access

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/consensus/plan/access"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
)

// Plan is what tokens need of the replicated plan.
type Plan interface {
	State() *plan.State
	Apply(ctx context.Context, c plan.Command) (*plan.State, error)
}

var _ Plan = (*consensus.Consensus)(nil)

// Tokens are the tokens of the API.
type Tokens struct {
	id     *identity.Identity
	plan   Plan
	orders *lead.Orders
	log    *slog.Logger
	grant  *lead.Order[grant, granted]
	revoke *lead.Order[string, lead.Index]
}

// grant asks the leader for a token. The secret stays on the node that was asked for it: the leader
// gets its hash.
type grant struct {
	Hash  string        `json:"hash"`
	Scope access.Scope  `json:"scope"`
	Name  string        `json:"name,omitempty"`
	Life  time.Duration `json:"life,omitempty"` // 0: for ever
	// Authority is the serial number of the CA that it pins.
	Authority uint64 `json:"authority,omitempty"`
}

type granted struct {
	ID      string     `json:"id"`
	Expires time.Time  `json:"expires"`
	Index   lead.Index `json:"index"` // of the plan that has it
}

// Register registers the orders about tokens. It must be called before any is answered.
func Register(o *lead.Orders, id *identity.Identity, p Plan, log *slog.Logger) *Tokens {
	t := &Tokens{id: id, plan: p, orders: o, log: log}
	t.grant = lead.Register(o, "grant-access", lead.Once, t.onGrant)
	t.revoke = lead.Register(o, "revoke-access", lead.Once, t.onRevoke)
	return t
}

func (t *Tokens) onGrant(ctx context.Context, from string, g grant) (granted, error) {
	now := t.id.Now()
	token := access.New(g.Hash, g.Scope, g.Name, now, g.Life)
	token.Authority = g.Authority
	s, err := t.plan.Apply(ctx, plan.GrantAccess{Token: token, Now: now})
	switch {
	case errors.Is(err, plan.ErrAuthoritySerial):
		return granted{}, mesh.Refuse(lead.Conflict, "the mesh is getting a new CA at this moment: ask again for a token that pins it")
	case errors.Is(err, access.ErrFull), errors.Is(err, plan.ErrNotAllKnow):
		return granted{}, mesh.Refuse(lead.Conflict, "%v", err)
	case errors.Is(err, access.ErrInvalid):
		return granted{}, mesh.Refuse(lead.Invalid, "%v", err)
	case err != nil:
		return granted{}, err
	}
	t.log.Info("made an API token", "id", token.ID, "name", token.Name, "scope", token.Scope, "asked", from)
	return granted{ID: token.ID, Expires: token.Expires, Index: lead.Index(s.Index)}, nil
}

func (t *Tokens) onRevoke(ctx context.Context, from, id string) (lead.Index, error) {
	s, err := t.plan.Apply(ctx, plan.RevokeAccess{ID: id})
	if errors.Is(err, access.ErrUnknown) {
		return 0, mesh.Refuse(lead.NotFound, "no API token %s: `hopmesh api token list` shows those there are", id)
	}
	if err != nil {
		return 0, err
	}
	t.log.Info("revoked an API token", "id", id, "asked", from)
	return lead.Index(s.Index), nil
}

// Create makes a token. The request was checked.
func (t *Tokens) Create(ctx context.Context, r api.AccessRequest) (api.AccessToken, error) {
	life, err := r.Life()
	if err != nil {
		return api.AccessToken{}, err
	}
	token, err := identity.NewAPIToken(t.id.CAHash())
	if err != nil {
		return api.AccessToken{}, err
	}
	made, err := t.grant.Do(ctx, grant{Hash: token.Hash(), Scope: access.Scope(r.Scope), Name: r.Name, Life: life, Authority: t.id.CASerial()})
	if err == nil {
		err = t.orders.ReadUpTo(ctx, made.Index) // so that the asked node accepts it
	}
	if err != nil {
		return api.AccessToken{}, lead.APIError(err)
	}
	a := api.AccessToken{ID: made.ID, Token: token.String(), Name: r.Name, Scope: r.Scope}
	if !made.Expires.IsZero() {
		a.Expires = &made.Expires
	}
	return a, nil
}

// List lists the tokens that the mesh accepts, as this node knows them.
func (t *Tokens) List() []api.AccessInfo {
	list := []api.AccessInfo{}
	for _, token := range t.plan.State().Access {
		info := api.AccessInfo{ID: token.ID, Name: token.Name, Scope: string(token.Scope), Created: token.Created}
		if !token.Expires.IsZero() {
			info.Expires = &token.Expires
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b api.AccessInfo) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Revoke revokes a token.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	return lead.APIError(lead.Commit(ctx, t.revoke, id))
}

// Scope returns what the holder of a token may do, as this node knows it.
func (t *Tokens) Scope(text string) (string, error) {
	token, err := identity.ParseAPIToken(text)
	if err != nil {
		return "", err
	}
	found, err := t.plan.State().Access.Find(token.Hash(), t.id.Now())
	return string(found.Scope), err
}
