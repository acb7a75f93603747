package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
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
	// What one step can't do, because of one node, must not keep the others from
	// theirs.
	for _, step := range []func(context.Context, *plan.State) error{
		m.meet, m.takeBack, m.dropReaped, m.place, m.assign, m.letGo, m.turnKey,
	} {
		err := step(ctx, m.plan.State())
		if ctx.Err() != nil || errors.Is(err, consensus.ErrNotLeader) {
			return
		}
		if err != nil {
			m.log.Info("the leader's round left something undone", "err", err)
		}
	}
}

// encounters is what a leader has learnt in its term by asking.
type encounters struct {
	term uint64
	met  map[string]time.Time // when each live node was last asked
}

// maxGeneration is more than any mesh will see: whoever claims more is broken.
const maxGeneration = 1 << 50

// meet asks every live node once a term, and again when it has come back or shows
// another version, for two things: what it is, so that the plan stays true after
// an upgrade or a change of hardware; and which generation it has seen, so that
// none is issued twice: after a recovery from the loss of a quorum, it may have
// followed a plan that the survivors never had.
func (m *member) meet(ctx context.Context, s *plan.State) error {
	if term := m.plan.Term(); m.known.term != term {
		m.known = encounters{term: term, met: map[string]time.Time{}}
	}
	var errs []error
	for _, p := range m.mesh.Members() {
		in, ok := s.Members[p.ID]
		if !ok || p.Status != mesh.Alive || m.known.met[p.ID].After(p.Since) && p.Version == in.Version {
			continue
		}
		st, err := m.ask(ctx, p.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, m.record(ctx, in, st))
		m.known.met[p.ID] = time.Now()
	}
	return errors.Join(errs...)
}

func (m *member) record(ctx context.Context, in plan.Member, st stats) error {
	if st.Generation > m.plan.State().Generation && st.Generation < maxGeneration {
		if _, err := m.plan.Apply(ctx, plan.Advance{Generation: st.Generation}); err != nil {
			return err
		}
	}
	speed := steadySpeed(in.Speed, st.Speed)
	if st.Version == in.Version && st.Device == in.Device && st.Memory == in.Memory && speed == in.Speed {
		return nil
	}
	_, err := m.plan.Apply(ctx, plan.UpdateMember{ID: in.ID, Version: st.Version, Device: st.Device, Memory: st.Memory, Speed: speed})
	return err
}

// takeBack makes members of those that are here with a certificate of this mesh
// but not in the plan: nodes that were removed for their long absence, or whose
// admission a recovery lost.
func (m *member) takeBack(ctx context.Context, s *plan.State) error {
	var errs []error
	for _, p := range m.mesh.Members() {
		if _, in := s.Members[p.ID]; in || p.Status != mesh.Alive || s.Refused(p.ID) {
			continue
		}
		st, err := m.ask(ctx, p.ID) // proves that it holds the certificate
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, err = m.plan.Apply(ctx, plan.AddMember{Member: plan.Member{
			ID: p.ID, Name: st.Name, Version: st.Version, Device: st.Device, Memory: st.Memory, Speed: st.Speed, PublicKey: st.PublicKey,
		}})
		if err != nil {
			errs = append(errs, fmt.Errorf("take node %s back: %w", p.ID, err))
			continue
		}
		m.log.Info("took a node back into the plan", "name", st.Name, "id", p.ID)
	}
	return errors.Join(errs...)
}

// dropReaped removes nodes that gossip has given up for lost.
func (m *member) dropReaped(ctx context.Context, s *plan.State) error {
	var errs []error
	for id := range m.reaped.take() {
		_, in := s.Members[id]
		if _, back := m.mesh.Member(id); !in || back {
			continue
		}
		if _, err := m.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: plan.Removed}); err != nil {
			m.reaped.add(id)
			errs = append(errs, err)
			continue
		}
		m.log.Warn("removed a node that has been gone for long", "name", nameOf(s, id), "id", id)
	}
	return errors.Join(errs...)
}

// letGo ends the membership of nodes that are leaving, once Raft no longer needs
// their vote and nobody what they hold.
func (m *member) letGo(ctx context.Context, s *plan.State) error {
	voters := map[string]bool{}
	for _, server := range m.plan.Servers() {
		voters[server.ID] = server.Voter
	}
	var errs []error
	for id, p := range s.Members {
		if !p.Leaving || voters[id] || !m.mayGo(id, s) {
			continue
		}
		if _, err := m.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: plan.Left}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
