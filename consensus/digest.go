package consensus

import (
	"sync"

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

// at returns the digest of the plan right after the command at an index. Commands are applied
// while a digest is made.
func (r *recent) at(index uint64) (string, bool) {
	s, digest := r.find(index)
	if s == nil || digest != "" {
		return digest, s != nil
	}
	digest = s.Digest()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.states {
		if r.states[i] == s {
			r.digests[i] = digest
		}
	}
	return digest, true
}

func (r *recent) find(index uint64) (*plan.State, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for back := range keptStates {
		i := (r.next + keptStates - 1 - back) % keptStates
		if s := r.states[i]; s == nil || s.Index == index {
			return s, r.digests[i]
		}
	}
	return nil, ""
}
