package node

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

// lead is one round of the leader's work beyond the voters, which consensus sees
// to: it brings the plan in line with who is there. It is called again and again
// while this node leads, so each round does what it can and leaves the rest.
func (m *member) lead(ctx context.Context) {
	select {
	case <-m.opened:
	case <-ctx.Done():
		return
	}
	s := m.plan.State()
	if s.MeshID == "" {
		return
	}
	for _, step := range []func(context.Context, *plan.State) error{
		m.passGenerations, m.recordOwn, m.takeBack, m.dropReaped, m.letGo, m.turnKey,
	} {
		if err := step(ctx, m.plan.State()); err != nil {
			if ctx.Err() == nil && !errors.Is(err, mesh.ErrClosed) {
				m.log.Info("leader's round will go on", "err", err)
			}
			return
		}
	}
}

// passGenerations makes sure that no generation is ever issued twice: after a
// recovery from the loss of a quorum, some live node may have seen a plan that
// the survivors never had.
func (m *member) passGenerations(ctx context.Context, s *plan.State) error {
	if term := m.plan.Term(); m.passed != term {
		highest := s.Generation
		for _, id := range m.live(s) {
			st, err := m.ask(ctx, id)
			if err != nil {
				continue // it will be told of a newer plan before it acts
			}
			highest = max(highest, st.Generation)
		}
		if highest > s.Generation {
			if _, err := m.plan.Apply(ctx, plan.Advance{Generation: highest}); err != nil {
				return err
			}
		}
		m.passed = term
	}
	return nil
}

// recordOwn keeps what the plan says of every live node true after an upgrade or
// a change of hardware.
func (m *member) recordOwn(ctx context.Context, s *plan.State) error {
	for _, p := range m.mesh.Members() {
		in, ok := s.Members[p.ID]
		if !ok || p.Status != mesh.Alive || p.Version == in.Version {
			continue
		}
		st, err := m.ask(ctx, p.ID)
		if err != nil {
			return err
		}
		if st.Version == in.Version && st.Device == in.Device && st.Memory == in.Memory {
			continue
		}
		if _, err := m.plan.Apply(ctx, plan.UpdateMember{ID: p.ID, Version: st.Version, Device: st.Device, Memory: st.Memory}); err != nil {
			return err
		}
	}
	return nil
}

// takeBack makes members of those that are here with a certificate of this mesh
// but not in the plan: nodes that were removed for their long absence, or whose
// admission a recovery lost.
func (m *member) takeBack(ctx context.Context, s *plan.State) error {
	for _, p := range m.mesh.Members() {
		if _, in := s.Members[p.ID]; in || p.Status != mesh.Alive || s.Refused(p.ID) {
			continue
		}
		st, err := m.ask(ctx, p.ID) // proves that it holds the certificate
		if err != nil {
			return err
		}
		_, err = m.plan.Apply(ctx, plan.AddMember{Member: plan.Member{
			ID: p.ID, Name: st.Name, Version: st.Version, Device: st.Device, Memory: st.Memory, PublicKey: st.PublicKey,
		}})
		if err != nil {
			return err
		}
		m.log.Info("took a node back into the plan", "name", st.Name, "id", p.ID)
	}
	return nil
}

// dropReaped removes nodes that gossip has given up for lost.
func (m *member) dropReaped(ctx context.Context, s *plan.State) error {
	for id := range m.reaped.take() {
		_, in := s.Members[id]
		if _, back := m.mesh.Member(id); !in || back {
			continue
		}
		if _, err := m.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: plan.Removed}); err != nil {
			m.reaped.add(id)
			return err
		}
		m.log.Warn("removed a node that has been gone for long", "name", nameOf(s, id), "id", id)
	}
	return nil
}

// letGo ends the membership of nodes that are leaving, once Raft no longer needs
// their vote.
func (m *member) letGo(ctx context.Context, s *plan.State) error {
	for _, server := range m.plan.Servers() {
		if p, in := s.Members[server.ID]; !in || !p.Leaving || server.Voter {
			continue
		}
		if _, err := m.plan.Apply(ctx, plan.RemoveMember{ID: server.ID, Why: plan.Left}); err != nil {
			return err
		}
	}
	return nil
}
