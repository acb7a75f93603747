package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

// follow makes this node do what the plan says, each time it changes, and keeps
// on disk where the others are.
func (m *member) follow(ctx context.Context) error {
	var was *plan.State
	var leader string
	var saved []mesh.Peer
	ready := false
	for {
		changed := m.plan.Changed()
		now := m.plan.State()
		if was != now {
			if err := m.adopt(was, now); err != nil {
				return err
			}
			was = now
		}
		if l := m.plan.Leader(); l != leader && now.MeshID != "" {
			leader = l
			m.announceLeader(now, l)
		}
		if !ready && m.settled() {
			ready = true
			if err := m.dir.begun(); err != nil {
				return err
			}
			m.announceReady()
		}
		if peers := m.mesh.Peers(); len(peers) > 0 && !slices.Equal(peers, saved) {
			if err := m.dir.savePeers(peers); err != nil {
				m.log.Warn("a restart may take longer to find the mesh", "err", err)
			}
			saved = peers
		}
		select {
		case <-changed:
		case <-m.rumour:
		case <-ctx.Done():
			return nil
		}
	}
}

// adopt puts one version of the plan into force. It is called with every version
// that this node sees, in order, though not with every version there was.
func (m *member) adopt(was, now *plan.State) error {
	if gone, ok := now.Gone[m.id.ID()]; ok && (gone.Why != plan.Removed) {
		if gone.Why == plan.Left {
			return ErrLeft
		}
		return fmt.Errorf("%w (%s); to let it back in, move its data directory away and join anew with a fresh token", ErrRemoved, gone.Why)
	}
	m.keeper.Adopt(now)
	m.runner.Adopt(now)
	m.mesh.SetGeneration(now.Generation)
	m.mesh.Enforce()
	for id, g := range now.Gone {
		if _, seen := m.mesh.Member(id); seen && (was == nil || was.Gone[id] != g) {
			select {
			case m.gone <- id:
			default: // gossip gives it up by itself, later
			}
		}
	}
	if err := m.arrangeKeys(now.Key); err != nil && !errors.Is(err, errKeyMissing) {
		return err
	}
	if was == nil || was.Generation != now.Generation {
		m.say("plan", m.id.Name(), fmt.Sprintf("generation %d is in force", now.Generation), now.Generation)
	}
	return nil
}

// forget makes gossip drop those who are gone. Each takes as long as gossip needs to
// spread the word, which must hold up nothing else.
func (m *member) forget(ctx context.Context) error {
	for {
		select {
		case id := <-m.gone:
			if err := m.mesh.Forget(id); err != nil {
				m.log.Debug("forget a node that is gone", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *member) announceLeader(s *plan.State, id string) {
	if id == "" {
		m.log.Warn("no leader")
		m.say("leader", "", "there is no leader", s.Generation)
		return
	}
	name := nameOf(s, id)
	m.log.Info("leader", "name", name, "id", id)
	m.say("leader", name, name+" leads", s.Generation)
}

func (m *member) announceReady() {
	self, _ := m.mesh.Member(m.id.ID())
	m.log.Info("ready", "mesh", m.id.MeshID(), "address", self.Addr)
	if m.opts.OnReady != nil {
		m.opts.OnReady(Ready{ID: m.id.ID(), Name: m.id.Name(), MeshID: m.id.MeshID(), Addr: self.Addr, Founded: m.start.founded})
	}
}

// nameOf is what people call a node; its id if the plan knows none.
func nameOf(s *plan.State, id string) string {
	if p, ok := s.Members[id]; ok {
		return p.Name
	}
	if g, ok := s.Gone[id]; ok && g.Name != "" {
		return g.Name
	}
	return id
}

// renew replaces the certificate at half its life, as often as it takes.
func (m *member) renew(ctx context.Context) error {
	for {
		wait := max(time.Until(m.id.RenewAt()), 0)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		if err := m.renewOnce(ctx); err != nil {
			m.log.Warn("the certificate is due for renewal; trying again in a minute", "expires", m.id.NotAfter(), "err", err)
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (m *member) renewOnce(ctx context.Context) error {
	r, err := m.id.Renew()
	if err != nil {
		return err
	}
	var chain [][]byte
	err = m.atLeader(ctx, opRenew, r.CSR(), &chain)
	if err != nil && ctx.Err() == nil && m.id.HasCAKey() && time.Now().After(m.id.NotAfter()) {
		// A mesh that was switched off for longer than its certificates live could
		// not elect a leader before they are renewed.
		chain, err = m.id.Sign(r.CSR(), m.id.ID(), time.Now())
	}
	if err != nil {
		return err
	}
	if err := r.Adopt(chain); err != nil {
		return err
	}
	m.mesh.Redial()
	m.log.Info("renewed the certificate", "expires", m.id.NotAfter())
	return nil
}
