package consensus

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// keptStates is for how many commands back a node can say what its plan was. A leader compares
// plans of its last rounds.
const keptStates = 128

// recent holds the last states of the plan, so that nodes can be compared at an equal index,
// however fast each applies. States share what has not changed.
type recent struct {
	mu      sync.Mutex
	states  [keptStates]*plan.State
	digests [keptStates]string // "" until asked for
	next    int
}

func (r *recent) add(s *plan.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[r.next], r.digests[r.next] = s, ""
	r.next = (r.next + 1) % keptStates
}

// at returns the digest of the plan right after the command at an index.
func (r *recent) at(index uint64) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for back := range keptStates {
		i := (r.next + keptStates - 1 - back) % keptStates
		switch s := r.states[i]; {
		case s == nil:
			return "", false
		case s.Index != index:
			continue
		case r.digests[i] == "":
			r.digests[i] = s.Digest()
		}
		return r.digests[i], true
	}
	return "", false
}

// DigestAt returns the digest of the plan right after the command at an index, if this node
// remembers it.
func (c *Consensus) DigestAt(index uint64) (digest string, known bool) { return c.fsm.recent.at(index) }

// Condemn makes this node stop taking part, because its plan is wrong: why says how that is
// known. Failed is closed, and Err is ErrDamaged.
func (c *Consensus) Condemn(why string) {
	c.fail(fmt.Errorf("the plan of this node %w (%s)", ErrDamaged, why))
}

// Release takes a node that has lost what it promised out of Raft's configuration, and returns
// once most of the other voters know. From then on it may come back with an empty log, as a
// newcomer: whatever it acknowledged before counts no more. It returns an error unless this node
// leads.
func (c *Consensus) Release(ctx context.Context, id string) error {
	if !c.IsLeader() || id == c.cfg.ID {
		return ErrNotLeader
	}
	for _, s := range c.Servers() {
		if s.ID == id {
			c.cfg.Log.Warn("a node lost its part of the plan's log; it is taken out until it comes back", "id", id)
			return c.await(ctx, func() raft.Future { return c.raft.RemoveServer(raft.ServerID(id), 0, patience(ctx)) })
		}
	}
	// What removed it may be committed no more than here.
	return c.Barrier(ctx)
}
