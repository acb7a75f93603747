package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// This file answers what the mesh and the consensus ask.

// isOpen says whether mesh and plan may be used. Callbacks come from the moment
// that either exists, so those that need both ask first.
func (m *member) isOpen() bool {
	select {
	case <-m.opened:
		return true
	default:
		return false
	}
}

// mostSilence is how long a node hears nothing of a leader that is well: several of its
// beats, as Raft counts them. Raft itself gives a leader up at some time after.
const mostSilence = 2 * time.Second

// leader is the node that leads, as far as this one knows and has heard lately; or "".
func (m *member) leader() string {
	if m.plan.Silence() >= mostSilence {
		return ""
	}
	return m.plan.Leader()
}

// settled says that this node is in touch: a leader is known and it is in the
// plan.
func (m *member) settled() bool {
	if !m.isOpen() {
		return false
	}
	_, in := m.plan.State().Members[m.id.ID()]
	return in && m.leader() != ""
}

// allow refuses those whom the plan refuses. It asks for the revoked, not for
// the members: a node that slept while today's leader joined would otherwise
// refuse the leader and never learn.
func (m *member) allow(id string) error {
	if m.isOpen() && m.plan.State().Refused(id) {
		return mesh.ErrUnauthorised
	}
	return nil
}

// heard takes in what gossip reports: a hint, nothing more.
func (m *member) heard(c mesh.Change) {
	switch c.Status {
	case mesh.Alive:
		m.log.Info("node is alive", "peer", c.Name, "id", c.ID)
	case mesh.Failed:
		m.log.Warn("node does not answer", "peer", c.Name, "id", c.ID)
		m.awaited.failed(c.ID)
	case mesh.Left:
		m.log.Info("node has left", "peer", c.Name, "id", c.ID)
	default:
		m.reaped.add(c.ID)
	}
	m.say("member", c.Name, fmt.Sprintf("%s is %s", c.Name, c.Status), 0)
	select {
	case m.rumour <- struct{}{}:
	default:
	}
	if m.isOpen() {
		m.plan.Hint()
	}
}

// refused is told when a proven member of this mesh ends a connection because its
// plan refuses this node. One peer's word is a hint: it may be wrong, or lie. The
// word of most voters that can be heard, within a while, is the mesh's.
func (m *member) refused(peer string) {
	if !m.isOpen() {
		return
	}
	var others, against int
	said := m.refusals.add(peer, time.Now())
	for _, server := range m.plan.Servers() {
		if !server.Voter || server.ID == m.id.ID() {
			continue
		}
		if said[server.ID] {
			against++
			others++
		} else if alive, _ := m.health(server.ID); alive {
			others++
		}
	}
	if against <= others/2 {
		return
	}
	err := ErrLeft
	if !m.wantsToLeave() {
		err = fmt.Errorf("%w (node %s says so, as do most voters); to let it back in, move its data directory away and join anew with a fresh token", ErrRemoved, peer)
	}
	select {
	case m.removed <- err:
	default:
	}
}

// wantsToLeave says whether this node asked to leave, now or before a restart.
func (m *member) wantsToLeave() bool {
	return m.leaving.Load() || m.plan.State().Members[m.id.ID()].Leaving
}

// refusals is who has lately refused this node.
type refusals struct {
	mu sync.Mutex
	at map[string]time.Time
}

// refusalLasts is for how long a peer's refusal counts. It is repeated at every
// attempt to connect.
const refusalLasts = time.Minute

func (r *refusals) add(peer string, now time.Time) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	r.at[peer] = now
	said := map[string]bool{}
	for id, at := range r.at {
		if now.Sub(at) < refusalLasts {
			said[id] = true
		} else {
			delete(r.at, id)
		}
	}
	return said
}

func (m *member) health(id string) (alive bool, since time.Duration) {
	p, ok := m.mesh.Member(id)
	if !ok {
		return false, 0
	}
	return p.Status == mesh.Alive, time.Since(p.Since)
}

// stats is what a node says of itself to a member that asks.
type stats struct {
	Applied    uint64 `json:"applied"`
	Generation uint64 `json:"generation"`
	Key        string `json:"key"` // digest of the gossip key in use
	Name       string `json:"name"`
	Version    string `json:"version"`
	Device     string `json:"device"`
	Memory     uint64 `json:"memory"`
	Speed      uint64 `json:"speed"`
	PublicKey  string `json:"public_key"`
}

func (m *member) ownStats() stats {
	return stats{
		Applied: m.plan.AppliedIndex(), Generation: m.plan.State().Generation,
		Key:  identity.KeyDigest(m.id.GossipKeys()[0].Key),
		Name: m.id.Name(), Version: m.opts.Version, Device: m.opts.Device, Memory: m.opts.Memory, Speed: m.opts.Speed,
		PublicKey: m.id.PublicKeyHash(),
	}
}

// awaited is whom the leader's round waits for. It waits no longer once gossip sees that
// the node has failed: what is due then is to work without it.
type awaited struct {
	mu   sync.Mutex
	stop map[string]context.CancelFunc // by node
}

// until has stop called when the node fails, unless what it returns was called before.
func (a *awaited) until(id string, stop context.CancelFunc) (over func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil {
		a.stop = map[string]context.CancelFunc{}
	}
	a.stop[id] = stop
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.stop, id)
	}
}

func (a *awaited) failed(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stop, in := a.stop[id]; in {
		stop()
	}
}

// statsTimeout bounds how long one silent node may hold up the leader's round.
const statsTimeout = 2 * time.Second

func (m *member) ask(ctx context.Context, id string) (stats, error) {
	if id == m.id.ID() {
		return m.ownStats(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	defer m.awaited.until(id, cancel)()
	b, err := m.mesh.Call(ctx, id, callStats, nil)
	if err != nil {
		return stats{}, err
	}
	var s stats
	if err := json.Unmarshal(b, &s); err != nil {
		return stats{}, fmt.Errorf("read what node %s says of itself: %w", id, err)
	}
	return s, nil
}

func (m *member) probe(ctx context.Context, id string) (uint64, error) {
	s, err := m.ask(ctx, id)
	return s.Applied, err
}

// handCAKey gives a future voter what any leader needs to admit newcomers.
func (m *member) handCAKey(ctx context.Context, id string) error {
	if id == m.id.ID() {
		return nil
	}
	key, err := m.id.CAKey()
	if err != nil {
		return fmt.Errorf("hand the CA key to node %s: %w", id, err)
	}
	_, err = m.mesh.Call(ctx, id, callCAKey, key)
	return err
}

// The calls that nodes make to each other.
const (
	callStats    = "stats"
	callCAKey    = "ca-key"
	callKeys     = "gossip-keys"
	callNewKey   = "new-gossip-key"
	callOperator = "operation"
	callVerify   = "verify-shard"
	callLive     = "job-progress"
	callReach    = "reach"
)

var (
	errNotFromLeader = errors.New("only the leader may say this")
	// errBehind: a node that does not know of the revocation yet would hand the new
	// key to the very node that is shut out.
	errBehind = errors.New("this node has not read the plan that far yet")
)

// serve registers this node's side of the calls.
func (m *member) serve() {
	m.mesh.Handle(callStats, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(m.ownStats()) })
	m.mesh.Handle(callCAKey, func(_ context.Context, _ string, key []byte) ([]byte, error) {
		// Whoever sends it, the key is the mesh's or AdoptCAKey refuses it.
		return nil, m.id.AdoptCAKey(key)
	})
	m.mesh.Handle(callKeys, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(m.id.GossipKeys()) })
	m.mesh.Handle(callNewKey, func(_ context.Context, peer string, b []byte) ([]byte, error) {
		if peer != m.plan.Leader() {
			return nil, errNotFromLeader
		}
		var k handedKey
		if err := json.Unmarshal(b, &k); err != nil {
			return nil, fmt.Errorf("read a gossip key: %w", err)
		}
		if m.plan.State().Index < k.AsOf {
			return nil, errBehind
		}
		return nil, m.holdKey(k.Key)
	})
	m.mesh.Handle(callOperator, m.operate)
	m.serveBulk()
	m.serveShards()
	m.serveJobs()
	m.serveReach()
}

// peersOf is where the grant says the other nodes are.
func peersOf(g identity.Grant) []mesh.Peer {
	var peers []mesh.Peer
	for _, p := range g.Peers {
		if a, err := netip.ParseAddrPort(p.Addr); err == nil {
			peers = append(peers, mesh.Peer{ID: p.ID, Addr: a})
		}
	}
	return peers
}
