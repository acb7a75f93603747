package member

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/damage"
)

// follow applies each version of the plan to this node, and keeps the addresses of the
// others on disk.
func (m *Member) follow(ctx context.Context) error {
	var was *plan.State
	var leader string
	var saved []mesh.Peer
	ready := false
	for {
		changed := m.plan.Changed()
		now := m.plan.State()
		if was != now {
			if err := m.take(was, now); err != nil {
				return err
			}
			was = now
		}
		if l := m.plan.Leader(); l != leader && now.MeshID != "" {
			leader = l
			m.announceLeader(now, l)
			if l != "" && l != m.cfg.ID.ID() {
				m.cfg.Damage.Clear(damage.Log, differKey) // the leader says it, if it is so
			}
		}
		if !m.plan.IsLeader() {
			m.cfg.Damage.Clear(damage.Log, differKey)
		}
		if !ready && m.Settled() {
			ready = true
			if err := m.cfg.Dir.begun(); err != nil {
				return err
			}
			if err := m.recovered(); err != nil {
				return err
			}
			m.announceReady()
		}
		if peers := m.mesh.Peers(); len(peers) > 0 && !slices.Equal(peers, saved) {
			if err := m.cfg.Dir.savePeers(peers); err != nil {
				m.cfg.Log.Warn("a restart may take longer to find the mesh", "err", err)
			}
			saved = peers
		}
		select {
		case <-changed:
		case <-m.gossip.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// take applies one version of the plan. It is called with versions in their order, but
// may skip some.
func (m *Member) take(was, now *plan.State) error {
	if gone, ok := now.Gone[m.cfg.ID.ID()]; ok && (gone.Why != plan.Removed) {
		if gone.Why == plan.Left {
			return ErrLeft
		}
		return fmt.Errorf("%w (%s); to let it back in, move its data directory away and join anew with a fresh token", ErrRemoved, gone.Why)
	}
	m.adopt(now)
	m.mesh.SetGeneration(now.Generation)
	m.mesh.Enforce()
	for id, g := range now.Gone {
		if _, seen := m.mesh.Member(id); seen && (was == nil || was.Gone[id] != g) {
			select {
			case m.gone <- id:
			default: // gossip forgets it by itself, later
			}
		}
	}
	m.succession.take(was, now)
	if err := m.keys.arrange(now.Key); err != nil && !errors.Is(err, errKeyMissing) {
		return err
	}
	if was == nil || was.Generation != now.Generation {
		m.cfg.Say("plan", m.cfg.ID.Name(), fmt.Sprintf("generation %d is in force", now.Generation), now.Generation)
	}
	return nil
}

// forget makes gossip drop nodes that are gone. Each takes as long as gossip needs to
// spread the news, so it runs in its own goroutine.
func (m *Member) forget(ctx context.Context) error {
	for {
		select {
		case id := <-m.gone:
			if err := m.mesh.Forget(id); err != nil {
				m.cfg.Log.Debug("forget a node that is gone", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Member) announceLeader(s *plan.State, id string) {
	if id == "" {
		m.cfg.Log.Warn("no leader")
		m.cfg.Say("leader", "", "there is no leader", s.Generation)
		return
	}
	name := s.NameOf(id)
	m.cfg.Log.Info("leader", "name", name, "id", id)
	m.cfg.Say("leader", name, name+" leads", s.Generation)
}

func (m *Member) announceReady() {
	self, _ := m.mesh.Member(m.cfg.ID.ID())
	m.cfg.Log.Info("ready", "mesh", m.cfg.ID.MeshID(), "address", self.Addr)
	m.cfg.Ready(self.Addr)
}

// recovered ends a setback, once this node follows the plan again.
func (m *Member) recovered() error {
	s := m.cfg.Dir.setback()
	if s == nil {
		return nil
	}
	if err := m.cfg.Dir.overcome(); err != nil {
		return err
	}
	m.cfg.Damage.Repaired(damage.Log, logKey, fmt.Sprintf("%s: this node has the plan again, from the others; what was damaged is kept until the next time", s.What))
	return nil
}
