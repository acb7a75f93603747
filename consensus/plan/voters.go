package plan

import (
	"cmp"
	"slices"
	"time"
)

// Server is a node in Raft's own configuration.
type Server struct {
	ID    string
	Voter bool
}

// Health is the leader's knowledge of a node.
type Health struct {
	Alive    bool
	Since    time.Duration // how long it has been alive, or failed
	CaughtUp bool          // its log is about as long as the leader's
}

// Action is a kind of change of Raft's configuration.
type Action string

// The actions that NextChange may return.
const (
	AddNonvoter Action = "add as non-voter"
	Promote     Action = "promote"
	Demote      Action = "demote"
	Remove      Action = "remove"
	Transfer    Action = "hand over leadership" // ID is the leader, which is to leave
)

// Change is the next change of Raft's configuration.
type Change struct {
	Action Action
	ID     string
	Why    string
}

const (
	// stableAfter is how long a node must have been alive before it may vote.
	stableAfter = 2 * time.Second
	// replaceAfter is how long a voter must have failed before another replaces it.
	// Restarts are shorter.
	replaceAfter = 20 * time.Second
	// patience is how long a live node may take to catch up before others stop waiting
	// to be replaced by it.
	patience = 30 * time.Second
)

// target returns the number of voters for a mesh of this many members. Two voters halt
// if either fails; four tolerate no more failures than three.
func target(members int) int {
	switch {
	case members >= 5:
		return 5
	case members >= 3:
		return 3
	}
	return 1
}

// NextChange returns the next change that the leader should make to the voters, if any.
// It makes one change at a time, each of which leaves a live majority; repeated calls
// reach a fixed point. It compares Raft's configuration with the plan in both
// directions, so that servers unknown to the plan are removed too.
func NextChange(s *State, servers []Server, leader string, health map[string]Health) (Change, bool) {
	if s.MeshID == "" || len(servers) == 0 {
		return Change{}, false
	}
	v := view(s, servers, leader, health)
	for _, step := range []func() (Change, bool){v.addMissing, v.removeStrays, v.promote, v.release, v.shrink} {
		if c, ok := step(); ok {
			return c, true
		}
	}
	return Change{}, false
}

// survey is the nodes, grouped by their role in the next change.
type survey struct {
	leader string
	target int

	missing []string // live members that Raft does not know yet
	strays  []server // servers that are not members and do not vote
	spares  []server // candidates for promotion, the longest alive first
	pending bool     // one more candidate is expected soon
	voters  []server // the first to lose its vote first
	good    int      // voters that are staying and not failed for long
	fresh   bool     // a staying voter failed only just now
}

type server struct {
	id      string
	health  Health
	member  bool
	leaving bool
}

// stays reports whether this server is a member that is not leaving.
func (n server) stays() bool { return n.member && !n.leaving }

func view(s *State, servers []Server, leader string, health map[string]Health) *survey {
	v := &survey{leader: leader, target: target(s.staying())}
	known := map[string]bool{}
	for _, raw := range servers {
		known[raw.ID] = true
		m, in := s.Members[raw.ID]
		n := server{id: raw.ID, health: health[raw.ID], member: in, leaving: m.Leaving}
		if raw.ID == leader {
			n.health = Health{Alive: true, Since: patience, CaughtUp: true}
		}
		h := n.health
		switch {
		case raw.Voter:
			v.voters = append(v.voters, n)
			if n.stays() && (h.Alive || h.Since < replaceAfter) {
				v.good++
				v.fresh = v.fresh || !h.Alive
			}
		case !in:
			v.strays = append(v.strays, n)
		case n.stays() && h.Alive && h.CaughtUp && h.Since >= stableAfter:
			v.spares = append(v.spares, n)
		case n.stays() && h.Alive && h.Since < patience:
			v.pending = true
		}
	}
	for id, m := range s.Members {
		// Raft retries slowly what it could not deliver, so a new node is added only
		// once it can be reached.
		if !known[id] && !m.Leaving && health[id].Alive {
			v.missing = append(v.missing, id)
		}
	}
	slices.Sort(v.missing)
	slices.SortFunc(v.strays, func(a, b server) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(v.spares, func(a, b server) int {
		return cmp.Or(cmp.Compare(b.health.Since, a.health.Since), cmp.Compare(a.id, b.id))
	})
	slices.SortFunc(v.voters, func(a, b server) int {
		return cmp.Or(order(a.health.Alive, b.health.Alive), order(a.id == leader, b.id == leader), cmp.Compare(b.id, a.id))
	})
	return v
}

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (v *survey) addMissing() (Change, bool) {
	if len(v.missing) == 0 {
		return Change{}, false
	}
	return Change{AddNonvoter, v.missing[0], "it is a new member"}, true
}

func (v *survey) removeStrays() (Change, bool) {
	if len(v.strays) == 0 {
		return Change{}, false
	}
	return Change{Remove, v.strays[0].id, "it is no member any more"}, true
}

// promote fills vacancies. The number of voters grows by two: an even number is avoided
// or left at once, because it tolerates no more failures than the odd number below it,
// and two voters tolerate none.
func (v *survey) promote() (Change, bool) {
	n := len(v.voters)
	if v.good >= v.target || n > v.target || len(v.spares) == 0 {
		return Change{}, false
	}
	if replaces := n == v.target; !replaces && v.good%2 == 1 && len(v.spares) < 2 {
		return Change{}, false
	}
	if v.live()+1 < majority(n+1) {
		return Change{}, false
	}
	why := "the mesh is large enough for one more voter"
	if v.good < n {
		why = "a voter has failed for long or is to go"
	}
	return Change{Promote, v.spares[0].id, why}, true
}

// release takes the vote of leaving nodes, after their replacement if one is available
// or soon will be. Removal is a later step.
func (v *survey) release() (Change, bool) {
	for _, n := range v.voters {
		if n.stays() || v.good < v.target && v.pending {
			continue
		}
		if n.id == v.leader {
			if slices.ContainsFunc(v.voters, func(o server) bool { return o.stays() && o.health.Alive && o.id != n.id }) {
				return Change{Transfer, n.id, "it is to go"}, true
			}
			continue
		}
		if v.safeWithout(n) {
			return Change{Demote, n.id, "it is to go"}, true
		}
	}
	return Change{}, false
}

// shrink takes votes away where there are too many: from a failed voter that was
// replaced, or because the mesh has become smaller. While a voter has failed only just
// now, nobody loses a vote, because it may be restarting.
func (v *survey) shrink() (Change, bool) {
	want := v.target
	if n := len(v.voters); n < want && n%2 == 0 && !v.pending {
		want = n - 1 // promote found no candidate to make it odd
	}
	if len(v.voters) <= want || v.fresh {
		return Change{}, false
	}
	for _, n := range v.voters {
		if n.id == v.leader || !v.safeWithout(n) {
			continue
		}
		why := "there are more voters than the mesh needs"
		if !n.health.Alive {
			why = "it has failed, and there are voters enough without it"
		}
		return Change{Demote, n.id, why}, true
	}
	return Change{}, false
}

func (v *survey) live() int {
	live := 0
	for _, n := range v.voters {
		if n.health.Alive {
			live++
		}
	}
	return live
}

// safeWithout reports whether the voters other than n have a live majority.
func (v *survey) safeWithout(n server) bool {
	live := v.live()
	if n.health.Alive {
		live--
	}
	rest := len(v.voters) - 1
	return rest > 0 && live >= majority(rest)
}

func majority(voters int) int { return voters/2 + 1 }
