package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/speed"
)

// Roster holds the leader's steps that keep the members of the plan in line with the nodes that
// exist. Only the leader's rounds call them.
type Roster struct {
	mesh       *mesh.Mesh
	plan       *consensus.Consensus
	contacts   *contacts
	gossip     *gossip
	rotation   rotation
	succession *successions
	comparer   comparer
	log        *slog.Logger

	term uint64
	met  map[string]time.Time // when each live node was last asked in this term
}

// Roster returns the steps of the leader's rounds about members.
func (m *Member) Roster() *Roster {
	return &Roster{mesh: m.mesh, plan: m.plan, contacts: m.contacts, gossip: m.gossip, rotation: rotation{keys: m.keys, contacts: m.contacts}, succession: m.succession, comparer: comparer{member: m}, log: m.cfg.Log}
}

// maxGeneration is more than any mesh reaches. A node that reports more is broken.
const maxGeneration = 1 << 50

// Meet asks every live node for its stats once a term, and again when it has come back or
// shows another version. It puts the node's version and hardware into the plan, and the
// highest generation that the node has seen, so that no generation is issued twice. After
// a recovery from the loss of a quorum, a node may have followed a plan that the
// survivors never had.
func (r *Roster) Meet(ctx context.Context, s *plan.State) error {
	if term := r.plan.Term(); r.term != term || r.met == nil {
		r.term, r.met = term, map[string]time.Time{}
	}
	var errs []error
	for _, p := range r.mesh.Members() {
		in, ok := s.Members[p.ID]
		if !ok || p.Status != mesh.Alive || r.mesh.Unlike(p.ID) != "" || r.met[p.ID].After(p.Since) && p.Version == in.Version {
			continue
		}
		st, err := r.contacts.ask(ctx, p.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, r.record(ctx, in, st))
		if err := r.succession.equip(ctx, p.ID, st); err != nil {
			errs = append(errs, err)
			continue // again in the next round
		}
		r.met[p.ID] = time.Now()
	}
	return errors.Join(errs...)
}

func (r *Roster) record(ctx context.Context, in plan.Member, st stats) error {
	if st.Generation > r.plan.State().Generation && st.Generation < maxGeneration {
		if _, err := r.plan.Apply(ctx, plan.Advance{Generation: st.Generation}); err != nil {
			return err
		}
	}
	rate := speed.Steady(in.Speed, st.Speed)
	if st.Version == in.Version && st.Computes == in.Computes && st.Device == in.Device && st.Memory == in.Memory && rate == in.Speed && st.Knows == in.Knows {
		return nil
	}
	_, err := r.plan.Apply(ctx, plan.UpdateMember{
		ID: in.ID, Version: st.Version, Computes: st.Computes, Device: st.Device, Memory: st.Memory, Speed: rate, Knows: st.Knows,
	})
	return err
}

// TakeBack adds nodes that have a certificate of this mesh but are not in the plan: they
// were removed after a long absence, or a recovery lost their admission.
//
// It adds none while the CA is replaced: who has stolen the former one's key could come in so.
func (r *Roster) TakeBack(ctx context.Context, s *plan.State) error {
	if s.Authority != nil && s.Authority.Former {
		return nil
	}
	var errs []error
	for _, p := range r.mesh.Members() {
		if _, in := s.Members[p.ID]; in || p.Status != mesh.Alive || s.Refused(p.ID) || r.mesh.Unlike(p.ID) != "" {
			continue
		}
		st, err := r.contacts.ask(ctx, p.ID) // which proves that it holds the certificate
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if max(st.Knows, plan.KindAdmit-1) < s.Needed() {
			continue // it could not follow the plan
		}
		_, err = r.plan.Apply(ctx, plan.AddMember{Member: plan.Member{
			ID: p.ID, Name: st.Name, Version: st.Version, Computes: st.Computes, Device: st.Device, Memory: st.Memory, Speed: st.Speed,
			PublicKey: st.PublicKey, Knows: st.Knows,
		}})
		if err != nil {
			errs = append(errs, fmt.Errorf("take node %s back: %w", p.ID, err))
			continue
		}
		r.log.Info("took a node back into the plan", "name", st.Name, "id", p.ID)
	}
	return errors.Join(errs...)
}

// DropReaped removes nodes that gossip has forgotten.
//
// It removes none while the CA is replaced: they could not come back.
func (r *Roster) DropReaped(ctx context.Context, s *plan.State) error {
	if s.Authority != nil && s.Authority.Former {
		return nil
	}
	var errs []error
	for id := range r.gossip.takeReaped() {
		_, in := s.Members[id]
		if _, back := r.mesh.Member(id); !in || back {
			continue
		}
		if _, err := r.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: plan.Removed}); err != nil {
			r.gossip.reap(id)
			errs = append(errs, err)
			continue
		}
		r.log.Warn("removed a node that has been gone for long", "name", s.NameOf(id), "id", id)
	}
	return errors.Join(errs...)
}

// LetGo ends the membership of nodes that are leaving, once Raft does not need their vote and
// mayGo reports that nobody needs their data.
func (r *Roster) LetGo(mayGo func(id string, s *plan.State) bool) lead.Step {
	return func(ctx context.Context, s *plan.State) error {
		voters := map[string]bool{}
		for _, server := range r.plan.Servers() {
			voters[server.ID] = server.Voter
		}
		var errs []error
		for id, p := range s.Members {
			if !p.Leaving || voters[id] || !mayGo(id, s) {
				continue
			}
			if _, err := r.plan.Apply(ctx, plan.RemoveMember{ID: id, Why: plan.Left}); err != nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
}

// TurnCA does one step in replacing the mesh's CA, if one is due.
func (r *Roster) TurnCA(ctx context.Context, s *plan.State) error { return r.succession.turn(ctx, s) }

// TurnKey does one step in replacing the gossip key, if one is due.
func (r *Roster) TurnKey(ctx context.Context, s *plan.State) error { return r.rotation.turn(ctx, s) }

// Compare compares the plans of those who decide, if it is time to.
func (r *Roster) Compare(ctx context.Context, s *plan.State) error { return r.comparer.Compare(ctx, s) }
