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
