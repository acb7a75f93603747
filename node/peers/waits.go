package peers

import (
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// sayAfter is after how long a question that has no answer is told of.
const sayAfter = 10 * time.Second

// lostLasts is longer than an attempt to reach a node takes, with the pause before it.
const lostLasts = 8 * time.Second

// A stamp is a question under way: the memory that its head is written into, and what
// is told of it while it has no answer.
type stamp struct {
	head  [headBytes]byte
	at    int // its place among the session's
	node  int
	query strategy.Query // without its body
	begin time.Duration  // since the session's begun
}

// A Wait is for another node of a job, which has not answered for long.
type Wait struct {
	Node string // its id
	What string // is asked of it, with epoch and step
	For  time.Duration
	// Lost says that the node can't be reached; else it may be slow, or wait itself.
	Lost bool
}

// Waits lists for whom this node waits in a job, each other node once, with the question
// that is the oldest.
func (r *Registry) Waits(key string) []Wait {
	r.mu.Lock()
	var s *Session
	if j := r.jobs[keyOf(key)]; j != nil {
		s = j.session
	}
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.waits()
}

func (s *Session) waits() (list []Wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begun)
	for node, id := range s.ids {
		var oldest *stamp
		for _, a := range s.asked {
			if a.node == node && now-a.begin >= sayAfter && (oldest == nil || a.begin < oldest.begin) {
				oldest = a
			}
		}
		if oldest != nil {
			list = append(list, Wait{Node: id, What: what(oldest.query), For: now - oldest.begin, Lost: s.isLost(node, now)})
		}
	}
	return list
}

// isLost says whether a node could not be reached lately, and has not answered since: as
// long as it can't, that is found again and again.
func (s *Session) isLost(node int, now time.Duration) bool {
	lost := time.Duration(s.lost[node].Load())
	return lost > time.Duration(s.heard[node].Load()) && now-lost < lostLasts
}

// asks notes a question until it is answered.
func (s *Session) asks(a *stamp, node int, q strategy.Query) {
	q.Body = nil
	a.node, a.query, a.begin = node, q, time.Since(s.begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.at = len(s.asked)
	s.asked = append(s.asked, a)
}

// answered forgets it: under the lock, since others read what is listed.
func (s *Session) answered(a *stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.asked) - 1
	s.asked[a.at] = s.asked[last]
	s.asked[a.at].at = a.at
	s.asked[last], s.asked = nil, s.asked[:last]
	a.query = strategy.Query{}
}
