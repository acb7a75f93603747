package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/lead"
)

// These are the callbacks of the mesh and the consensus. They may be called as soon as either
// exists, so those that need both check isOpen first.

// isOpen reports whether mesh and plan may be used.
func (m *Member) isOpen() bool {
	select {
	case <-m.opened:
		return true
	default:
		return false
	}
}

// Settled reports whether this node knows a leader and is in the plan.
func (m *Member) Settled() bool {
	if !m.isOpen() {
		return false
	}
	_, in := m.plan.State().Members[m.cfg.ID.ID()]
	return in && m.orders.Leader() != ""
}

// allow returns an error if the plan refuses a node. It checks for revoked nodes, not
// for members: a node that was down while today's leader joined would otherwise refuse
// the leader and never catch up.
func (m *Member) allow(id string) error {
	if m.isOpen() && m.plan.State().Refused(id) {
		return mesh.ErrUnauthorised
	}
	return nil
}

// admit asks the leader to admit a newcomer that has dialled this node.
func (m *Member) admit(ctx context.Context, r mesh.JoinRequest) (identity.Grant, error) {
	if !m.isOpen() {
		return identity.Grant{}, mesh.Refuse(mesh.RefusedLater, "%v", errStarting)
	}
	g, err := m.admission.admit.Do(ctx, r)
	if errors.Is(err, lead.ErrNoLeader) {
		return g, mesh.Refuse(mesh.RefusedLater, "%v", err)
	}
	return g, err
}

var errStarting = errors.New("this node is still starting")

// heard handles a change that gossip reports. It is only a hint.
func (m *Member) heard(c mesh.Change) {
	switch c.Status {
	case mesh.Alive:
		m.cfg.Log.Info("node is alive", "peer", c.Name, "id", c.ID)
	case mesh.Failed:
		m.cfg.Log.Warn("node does not answer", "peer", c.Name, "id", c.ID)
		m.gossip.failed(c.ID)
	case mesh.Left:
		m.cfg.Log.Info("node has left", "peer", c.Name, "id", c.ID)
	default:
		m.gossip.reap(c.ID)
	}
	m.cfg.Say("member", c.Name, fmt.Sprintf("%s is %s", c.Name, c.Status), 0)
	m.gossip.nudge()
	if m.isOpen() {
		m.plan.Hint()
	}
}

// refused is called when an authenticated member of this mesh ends a connection because
// its plan refuses this node. One peer may be wrong, or lie. If most voters that answer
// refuse this node within a while, the mesh does.
func (m *Member) refused(peer string) {
	if !m.isOpen() {
		return
	}
	var others, against int
	refuse := m.gossip.refuse(peer, time.Now())
	for _, server := range m.plan.Servers() {
		if !server.Voter || server.ID == m.cfg.ID.ID() {
			continue
		}
		if refuse[server.ID] {
			against++
			others++
		} else if m.Answers(server.ID) {
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

// wantsToLeave reports whether this node asked to leave, now or before a restart.
func (m *Member) wantsToLeave() bool {
	return m.leaving.Load() || m.plan.State().Members[m.cfg.ID.ID()].Leaving
}

// Health reports whether gossip sees a node alive, and since when. One that speaks no version
// of this node's can do nothing for it, so it does not count as alive.
func (m *Member) Health(id string) (alive bool, since time.Duration) {
	p, ok := m.mesh.Member(id)
	if !ok {
		return false, 0
	}
	return p.Status == mesh.Alive && m.mesh.Unlike(id) == "", time.Since(p.Since)
}

// Answers reports whether gossip sees a node alive, in a version that this one speaks.
func (m *Member) Answers(id string) bool {
	alive, _ := m.Health(id)
	return alive
}

// probe returns how much of the plan a node that may become a voter has applied.
func (m *Member) probe(ctx context.Context, id string) (uint64, error) {
	if !m.isOpen() {
		return 0, errStarting
	}
	st, err := m.contacts.ask(ctx, id)
	if err == nil {
		err = m.succession.mayVote(m.plan.State(), id, st)
	}
	return st.Applied, err
}

// beforePromote gives a future voter the CA key.
func (m *Member) beforePromote(ctx context.Context, id string) error {
	if !m.isOpen() {
		return errStarting
	}
	return m.keys.sendCAKey(ctx, id)
}
