package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// The gossip key turns in three steps, so that no node is ever without the key
// in use: every live node is given the new key over its control connection; the
// plan says that it is in use, and each node switches as it reads that; once all
// have, the plan retires the old one. The plan holds digests, never keys. A node
// that was away asks any member for the keys.

// keyTurn is the key that this leader is handing out, before the plan names it.
type keyTurn struct {
	next identity.GossipKey
	asOf uint64 // the plan's index when it was made: who is revoked later may have it
}

// handedKey is how a new key travels. AsOf is the plan's index by which the node
// that gets it must know who is shut out.
type handedKey struct {
	Key  identity.GossipKey `json:"key"`
	AsOf uint64             `json:"as_of"`
}

// holdKey accepts a key beside those in use.
func (m *member) holdKey(k identity.GossipKey) error {
	m.keys.Lock()
	defer m.keys.Unlock()
	held := m.id.GossipKeys()
	digest := identity.KeyDigest(k.Key)
	keep := held[:0:0]
	for _, h := range held {
		switch {
		case identity.KeyDigest(h.Key) == digest:
			return nil
		case h.Serial < k.Serial:
			keep = append(keep, h)
		}
		// A key with this serial that the plan never named was handed out by a
		// leader that then died; this one takes its place.
	}
	return m.setKeys(append(keep, k))
}

// setKeys is called with keys held.
func (m *member) setKeys(ring []identity.GossipKey) error {
	if err := m.id.SetGossipKeys(ring); err != nil {
		return fmt.Errorf("keep the gossip keys: %w", err)
	}
	raw := make([][]byte, len(ring))
	for i, k := range ring {
		raw[i] = k.Key
	}
	return m.mesh.SetGossipKeys(raw)
}

var errKeyMissing = errors.New("the gossip key in use is not here yet")

// arrangeKeys orders the keys as the plan says: the one in use first, the one
// being retired and one being handed out after it, all others gone.
func (m *member) arrangeKeys(k plan.Key) error {
	if k.Digest == "" {
		return nil
	}
	m.keys.Lock()
	defer m.keys.Unlock()
	held := m.id.GossipKeys()
	var ring []identity.GossipKey
	for _, h := range held {
		if identity.KeyDigest(h.Key) == k.Digest {
			ring = append(ring, h)
		}
	}
	if len(ring) == 0 {
		return errKeyMissing
	}
	for _, h := range held {
		if d := identity.KeyDigest(h.Key); d != k.Digest && (d == k.Previous || h.Serial > k.Serial) {
			ring = append(ring, h)
		}
	}
	if sameKeys(ring, held) {
		return nil
	}
	m.log.Info("gossip key", "serial", ring[0].Serial, "held", len(ring))
	return m.setKeys(ring)
}

func sameKeys(a, b []identity.GossipKey) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if string(a[i].Key) != string(b[i].Key) {
			return false
		}
	}
	return true
}

// seekKeys asks others for the keys as long as this node is out of touch: gossip
// may be closed to it just because the key has turned meanwhile. The call also
// gives the peer a connection by which to reach this node at a new address.
func (m *member) seekKeys(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		if !m.settled() || errors.Is(m.arrangeKeys(m.plan.State().Key), errKeyMissing) {
			m.fetchKeys(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// fetchKeys takes from others the keys that the plan names, and no others: whoever
// answers may know less than this node, or mean ill. A node that has missed the
// turn learns the new digest first, through Raft, which needs no gossip.
func (m *member) fetchKeys(ctx context.Context) {
	for _, p := range m.mesh.Peers() {
		if ctx.Err() != nil {
			return
		}
		ring, err := m.askKeys(ctx, p)
		if err == nil {
			err = m.takeKeys(ring)
		}
		if err != nil {
			m.log.Debug("asked for the gossip keys", "peer", p.ID, "err", err)
		}
	}
}

func (m *member) takeKeys(ring []identity.GossipKey) error {
	want := m.plan.State().Key
	m.keys.Lock()
	held := m.id.GossipKeys()
	missing := func(k identity.GossipKey) bool {
		d := identity.KeyDigest(k.Key)
		return (d == want.Digest || d == want.Previous) && !slices.ContainsFunc(held, func(h identity.GossipKey) bool {
			return bytes.Equal(h.Key, k.Key)
		})
	}
	var err error
	for _, k := range ring {
		if missing(k) {
			held = append(held, k)
			err = errors.Join(err, m.setKeys(held))
		}
	}
	m.keys.Unlock()
	if err == nil {
		err = m.arrangeKeys(want)
	}
	return err
}

func (m *member) askKeys(ctx context.Context, p mesh.Peer) ([]identity.GossipKey, error) {
	b, err := m.mesh.Call(ctx, p.ID, callKeys, nil)
	if err != nil {
		return nil, err
	}
	var ring []identity.GossipKey
	if err := json.Unmarshal(b, &ring); err != nil {
		return nil, fmt.Errorf("read the gossip keys of node %s: %w", p.ID, err)
	}
	return ring, nil
}

// turnKey is the leader's part, one step a round. A node that gossip holds for
// failed is not waited for.
func (m *member) turnKey(ctx context.Context, s *plan.State) error {
	switch {
	case s.Key.Previous != "":
		return m.retireKey(ctx, s)
	case s.Key.Stale:
		return m.introduceKey(ctx, s)
	}
	return nil
}

func (m *member) introduceKey(ctx context.Context, s *plan.State) error {
	if m.turn.next.Serial != s.Key.Serial+1 {
		m.turn = keyTurn{next: identity.NewGossipKey(s.Key.Serial + 1), asOf: s.Index}
	}
	body, err := json.Marshal(handedKey{Key: m.turn.next, AsOf: m.turn.asOf})
	if err != nil {
		return fmt.Errorf("write a gossip key: %w", err)
	}
	for _, id := range m.live(s) {
		if id == m.id.ID() {
			err = m.holdKey(m.turn.next)
		} else {
			_, err = m.mesh.Call(ctx, id, callNewKey, body)
		}
		if err != nil {
			return fmt.Errorf("hand out the new gossip key: %w", err)
		}
	}
	_, err = m.plan.Apply(ctx, plan.RotateKey{
		Serial: m.turn.next.Serial, Digest: identity.KeyDigest(m.turn.next.Key), AsOf: m.turn.asOf,
	})
	return err
}

func (m *member) retireKey(ctx context.Context, s *plan.State) error {
	for _, id := range m.live(s) {
		st, err := m.ask(ctx, id)
		if err != nil {
			return fmt.Errorf("ask whether the new gossip key is in use: %w", err)
		}
		if st.Key != s.Key.Digest {
			return nil // it will read the plan soon
		}
	}
	_, err := m.plan.Apply(ctx, plan.RetireKey{Serial: s.Key.Serial})
	return err
}

// live lists the members that gossip holds for alive, this one included.
func (m *member) live(s *plan.State) []string {
	var ids []string
	for _, p := range m.mesh.Members() {
		if _, in := s.Members[p.ID]; in && p.Status == mesh.Alive {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
