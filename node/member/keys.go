package member

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/hopmesh/hopmesh/node/lead"
)

// The gossip key is replaced in three steps, so that no node is ever without the key
// in use. First every live node gets the new key over its control connection. Then the
// plan names it as the one in use, and each node switches when it reads that. Once all
// have switched, the plan retires the old one. The plan holds digests, never keys. A
// node that was away asks any member for the keys.

// The calls that carry keys.
const (
	callKeys   = "gossip-keys"
	callNewKey = "new-gossip-key"
	callCAKey  = "ca-key"
	// callNextCAKey carries the key of a CA that the plan may name.
	callNextCAKey = "next-ca-key"
)

// keyring holds the keys of this node: the gossip keys and, on voters, the CA key.
type keyring struct {
	id   *identity.Identity
	mesh *mesh.Mesh
	plan *consensus.Consensus
	log  *slog.Logger

	mu        sync.Mutex // held while the set of gossip keys changes
	preferred []byte     // the key that most nodes used when this one had no plan
}

// errBehind refuses a key, because a node that does not know of a revocation yet would
// pass the new key to the revoked node.
var errBehind = errors.New("this node has not read the plan that far yet")

// serve registers the handlers of the calls.
func (k *keyring) serve() {
	k.mesh.Handle(callCAKey, func(_ context.Context, _ string, key []byte) ([]byte, error) {
		// Any member may send it: AdoptCAKey accepts the mesh's key only.
		return nil, k.id.AdoptCAKey(key)
	})
	k.mesh.Handle(callNextCAKey, func(_ context.Context, peer string, key []byte) ([]byte, error) {
		if peer != k.plan.Leader() || !votes(k.plan, peer) {
			return nil, lead.ErrNotFromLeader
		}
		return nil, k.id.HoldNextCAKey(key)
	})
	k.mesh.Handle(callKeys, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(k.id.GossipKeys()) })
	k.mesh.Handle(callNewKey, func(_ context.Context, peer string, b []byte) ([]byte, error) {
		if peer != k.plan.Leader() {
			return nil, lead.ErrNotFromLeader
		}
		var h handedKey
		if err := json.Unmarshal(b, &h); err != nil {
			return nil, fmt.Errorf("read a gossip key: %w", err)
		}
		if k.plan.State().Index < h.AsOf {
			return nil, errBehind
		}
		return nil, k.hold(h.Key)
	})
}

func votes(p *consensus.Consensus, id string) bool {
	return slices.ContainsFunc(p.Servers(), func(s plan.Server) bool { return s.ID == id && s.Voter })
}

// sendCAKey gives a voter, or a future one, the key that any leader needs to admit newcomers, and
// the key of a CA that may be named soon.
func (k *keyring) sendCAKey(ctx context.Context, id string) error {
	if id == k.id.ID() {
		return nil
	}
	key, err := k.id.CAKey()
	if err != nil {
		return fmt.Errorf("hand the CA key to node %s: %w", id, err)
	}
	if err := k.hand(ctx, id, callCAKey, key); err != nil {
		return err
	}
	if key, err = k.id.NextCAKey(); err != nil || key == nil {
		return err
	}
	return k.hand(ctx, id, callNextCAKey, key)
}

func (k *keyring) hand(ctx context.Context, id, call string, key []byte) error {
	_, err := k.mesh.Call(ctx, id, call, key)
	return err
}

// handedKey is a new key on the wire. The node that gets it must have read the plan up
// to AsOf, so that it knows which nodes are revoked.
type handedKey struct {
	Key  identity.GossipKey `json:"key"`
	AsOf uint64             `json:"as_of"`
}

// hold adds a key to those in use.
func (k *keyring) hold(next identity.GossipKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.id.GossipKeys()
	digest := identity.KeyDigest(next.Key)
	keep := held[:0:0]
	for _, h := range held {
		switch {
		case identity.KeyDigest(h.Key) == digest:
			return nil
		case h.Serial < next.Serial:
			keep = append(keep, h)
		}
		// A leader that then died distributed a key with this serial, which the plan
		// never named; this one replaces it.
	}
	return k.set(append(keep, next))
}

// set is called with mu held.
func (k *keyring) set(ring []identity.GossipKey) error {
	if err := k.id.SetGossipKeys(ring); err != nil {
		return fmt.Errorf("keep the gossip keys: %w", err)
	}
	raw := make([][]byte, len(ring))
	for i, one := range ring {
		raw[i] = one.Key
	}
	return k.mesh.SetGossipKeys(raw)
}

var errKeyMissing = errors.New("the gossip key in use is not here yet")

// arrange orders the keys as the plan says: the one in use first, the one
// being retired and one being handed out after it, all others gone.
func (k *keyring) arrange(want plan.Key) error {
	if want.Digest == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.id.GossipKeys()
	ring := ordered(held, want)
	if len(ring) == 0 {
		return errKeyMissing
	}
	if sameKeys(ring, held) {
		return nil
	}
	k.log.Info("gossip key", "serial", ring[0].Serial, "held", len(ring))
	return k.set(ring)
}

// ordered returns the keys of these that the plan wants, the one in use first, or none if that is
// missing. Its serial is the plan's: nothing else finds one that was damaged on disk.
func ordered(held []identity.GossipKey, want plan.Key) (ring []identity.GossipKey) {
	for _, h := range held {
		if identity.KeyDigest(h.Key) == want.Digest {
			h.Serial = want.Serial
			ring = append(ring, h)
		}
	}
	if len(ring) == 0 {
		return nil
	}
	for _, h := range held {
		if d := identity.KeyDigest(h.Key); d != want.Digest && (d == want.Previous || h.Serial > want.Serial) {
			ring = append(ring, h)
		}
	}
	return ring
}

func sameKeys(a, b []identity.GossipKey) bool {
	return slices.EqualFunc(a, b, func(x, y identity.GossipKey) bool { return x.Serial == y.Serial && bytes.Equal(x.Key, y.Key) })
}

// seek asks others for the keys while this node is not settled, since it may be unable to
// gossip after a replacement of the key. The call also gives the peer a connection to
// this node at a new address.
func (k *keyring) seek(ctx context.Context, settled func() bool) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		if !settled() || errors.Is(k.arrange(k.plan.State().Key), errKeyMissing) {
			k.fetch(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// fetch takes from other nodes only the keys that the plan names, since a peer may be
// outdated or hostile. A node that has missed a replacement learns the new digest first,
// through Raft, which needs no gossip. It may have lost everybody's address, too; then the
// leader, which sends it the plan, has a connection to it. One that has lost its plan gets it
// when gossip sees it: so it takes the key that more than half of all known nodes use.
func (k *keyring) fetch(ctx context.Context) {
	var ids []string
	for _, p := range k.mesh.Peers() {
		ids = append(ids, p.ID)
	}
	if leader := k.plan.Leader(); leader != "" && !slices.Contains(ids, leader) {
		ids = append(ids, leader)
	}
	none := func() bool { return k.plan.State().Key.Digest == "" }
	used := poll{of: len(ids)}
	for _, id := range ids {
		if ctx.Err() != nil {
			return
		}
		ring, err := k.ask(ctx, id)
		switch {
		case err == nil && none():
			used.add(ring)
		case err == nil:
			err = k.take(ring)
		}
		if err != nil {
			k.log.Debug("asked for the gossip keys", "peer", id, "err", err)
		}
	}
	if key, is := used.most(); is && none() {
		if err := k.prefer(key); err != nil {
			k.log.Warn("can't keep the gossip key that most nodes use", "err", err)
		}
	}
}

// A poll counts which gossip keys other nodes use.
type poll struct {
	of   int // nodes that were asked
	used []identity.GossipKey
}

func (p *poll) add(ring []identity.GossipKey) {
	if len(ring) > 0 {
		p.used = append(p.used, ring[0])
	}
}

// most returns the key that more than half of the nodes use, whether they answer or not: a few that
// are hostile, or have been away, can't outvote the others.
func (p *poll) most() (identity.GossipKey, bool) {
	for _, key := range p.used {
		n := 0
		for _, other := range p.used {
			if other.Serial == key.Serial && bytes.Equal(other.Key, key.Key) {
				n++
			}
		}
		if 2*n > p.of {
			return key, true
		}
	}
	return identity.GossipKey{}, false
}

// prefer puts a key before those that are held. None of those goes, but for one that was preferred
// before.
func (k *keyring) prefer(key identity.GossipKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.id.GossipKeys()
	if len(held) > 0 && bytes.Equal(held[0].Key, key.Key) {
		return nil
	}
	ring := []identity.GossipKey{key}
	for _, h := range held {
		if !bytes.Equal(h.Key, key.Key) && !bytes.Equal(h.Key, k.preferred) {
			ring = append(ring, h)
		}
	}
	k.log.Info("this node has no plan, and takes the gossip key that most nodes use", "serial", key.Serial)
	err := k.set(ring)
	if err == nil {
		k.preferred = key.Key
	}
	return err
}

func (k *keyring) take(ring []identity.GossipKey) error {
	want := k.plan.State().Key
	k.mu.Lock()
	held := k.id.GossipKeys()
	missing := func(one identity.GossipKey) bool {
		d := identity.KeyDigest(one.Key)
		return (d == want.Digest || d == want.Previous) && !slices.ContainsFunc(held, func(h identity.GossipKey) bool {
			return bytes.Equal(h.Key, one.Key)
		})
	}
	var err error
	for _, one := range ring {
		if missing(one) {
			held = append(held, one)
			err = errors.Join(err, k.set(held))
		}
	}
	k.mu.Unlock()
	if err == nil {
		err = k.arrange(want)
	}
	return err
}

func (k *keyring) ask(ctx context.Context, id string) ([]identity.GossipKey, error) {
	b, err := k.mesh.Call(ctx, id, callKeys, nil)
	if err != nil {
		return nil, err
	}
	var ring []identity.GossipKey
	if err := json.Unmarshal(b, &ring); err != nil {
		return nil, fmt.Errorf("read the gossip keys of node %s: %w", id, err)
	}
	return ring, nil
}

// rotation is the leader's part in replacing the gossip key.
type rotation struct {
	keys     *keyring
	contacts *contacts

	// next is the key that this leader distributes, before the plan names it, and asOf the
	// plan's index when it was made: nodes that are revoked later may have it.
	next identity.GossipKey
	asOf uint64
}

// turn does one step in each of the leader's rounds. It does not wait for nodes that
// gossip sees as failed.
func (r *rotation) turn(ctx context.Context, s *plan.State) error {
	switch {
	case s.Key.Previous != "":
		return r.retire(ctx, s)
	case s.Key.Stale:
		return r.introduce(ctx, s)
	}
	return nil
}

func (r *rotation) introduce(ctx context.Context, s *plan.State) error {
	if r.next.Serial != s.Key.Serial+1 {
		r.next, r.asOf = identity.NewGossipKey(s.Key.Serial+1), s.Index
	}
	body, err := json.Marshal(handedKey{Key: r.next, AsOf: r.asOf})
	if err != nil {
		return fmt.Errorf("write a gossip key: %w", err)
	}
	for _, id := range r.contacts.live(s) {
		if id == r.keys.id.ID() {
			err = r.keys.hold(r.next)
		} else {
			_, err = r.keys.mesh.Call(ctx, id, callNewKey, body)
		}
		if err != nil {
			return fmt.Errorf("hand out the new gossip key: %w", err)
		}
	}
	_, err = r.keys.plan.Apply(ctx, plan.RotateKey{
		Serial: r.next.Serial, Digest: identity.KeyDigest(r.next.Key), AsOf: r.asOf,
	})
	return err
}

func (r *rotation) retire(ctx context.Context, s *plan.State) error {
	for _, id := range r.contacts.live(s) {
		st, err := r.contacts.ask(ctx, id)
		if err != nil {
			return fmt.Errorf("ask whether the new gossip key is in use: %w", err)
		}
		if st.Key != s.Key.Digest {
			return nil // it will read the plan soon
		}
	}
	_, err := r.keys.plan.Apply(ctx, plan.RetireKey{Serial: s.Key.Serial})
	return err
}
