package member

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// callStats is the call that asks a node for its stats.
const callStats = "stats"

// contacts asks nodes about themselves.
type contacts struct {
	id     *identity.Identity
	mesh   *mesh.Mesh
	plan   *consensus.Consensus
	about  About
	gossip *gossip
}

// serve registers the handler of callStats.
func (c *contacts) serve() {
	c.mesh.Handle(callStats, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(c.own()) })
}

// stats is what a node reports about itself.
type stats struct {
	Applied    uint64       `json:"applied"`
	Generation uint64       `json:"generation"`
	Key        string       `json:"key"` // digest of the gossip key in use
	Name       string       `json:"name"`
	Version    string       `json:"version"`
	Computes   plan.Numbers `json:"computes"`
	Device     string       `json:"device"`
	Memory     uint64       `json:"memory"`
	Speed      uint64       `json:"speed"`
	PublicKey  string       `json:"public_key"`
	// Knows is the newest command of the plan that the node knows; 0: it does not say.
	Knows plan.Kind `json:"knows,omitempty"`
	// CA is the digest of the key of the CA that issued its certificate. CAKey says that it
	// holds the key of the newest CA that it knows.
	CA    string `json:"ca,omitempty"`
	CAKey bool   `json:"ca_key,omitempty"`
	// Former says that it trusts the CA before, too.
	Former bool `json:"former,omitempty"`
}

func (c *contacts) own() stats {
	return stats{
		Applied: c.plan.AppliedIndex(), Generation: c.plan.State().Generation,
		Key:  identity.KeyDigest(c.id.GossipKeys()[0].Key),
		Name: c.id.Name(), Version: c.about.Version, Computes: Computing(c.about.Numbers), Device: c.about.Device, Memory: c.about.Memory, Speed: c.about.Speed,
		PublicKey: c.id.PublicKeyHash(), Knows: Knows(c.about.Numbers),
		CA: hashText(c.id.Issuer()), CAKey: c.id.HasCAKey(), Former: c.id.TrustsFormer(),
	}
}

// statsTimeout bounds how long one silent node may delay the leader's round.
const statsTimeout = 2 * time.Second

// ask returns the stats of a node. It stops waiting once gossip sees that the node has failed.
func (c *contacts) ask(ctx context.Context, id string) (stats, error) {
	if id == c.id.ID() {
		return c.own(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	defer c.gossip.until(id, cancel)()
	b, err := c.mesh.Call(ctx, id, callStats, nil)
	if err != nil {
		return stats{}, err
	}
	var s stats
	if err := json.Unmarshal(b, &s); err != nil {
		return stats{}, fmt.Errorf("read what node %s says of itself: %w", id, err)
	}
	return s, nil
}

// live lists the members that gossip sees alive, this one included.
func (c *contacts) live(s *plan.State) []string {
	var ids []string
	for _, p := range c.mesh.Members() {
		if _, in := s.Members[p.ID]; in && p.Status == mesh.Alive {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
