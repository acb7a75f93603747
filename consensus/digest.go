package consensus

import (
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

const (
	// keptStates is for how many commands back a node can say what its plan was. A leader
	// compares plans of its last rounds.
	keptStates = 128
	// keptBytes bounds what these states take that they do not share, from fewestStates on. An
	// epoch makes a new copy of its job's history.
	keptBytes    = 16 << 20
	fewestStates = 4
)

// recent holds the last states of the plan, so that nodes can be compared at an equal index,
// however fast each applies.
type recent struct {
	mu      sync.Mutex
	states  [keptStates]*plan.State
	digests [keptStates]string // "" until asked for
	bytes   [keptStates]int    // as plan.State.Own counts
	next    int
	kept    int // how many states
	total   int // sum of bytes
}

func (r *recent) add(s *plan.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.states[(r.next+keptStates-1)%keptStates]
	if before == nil {
		before = new(plan.State)
	}
	if r.kept == keptStates {
		r.drop()
	}
	r.states[r.next], r.digests[r.next], r.bytes[r.next] = s, "", s.Own(before)
	r.kept, r.total = r.kept+1, r.total+r.bytes[r.next]
	r.next = (r.next + 1) % keptStates
	for r.total > keptBytes && r.kept > fewestStates {
		r.drop()
	}
}

// drop forgets the oldest state. It is called with mu held.
func (r *recent) drop() {
	oldest := (r.next + keptStates - r.kept) % keptStates
	r.kept, r.total = r.kept-1, r.total-r.bytes[oldest]
	r.states[oldest], r.digests[oldest], r.bytes[oldest] = nil, "", 0
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
