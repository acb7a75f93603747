package peers

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// sayAfter is how long a question may stay unanswered before it is reported.
const sayAfter = 10 * time.Second

// lostLasts is longer than an attempt to reach a node takes, including the pause before
// it.
const lostLasts = 8 * time.Second

// contact records when other nodes last answered in a session.
type contact struct {
	begun time.Time
	heard []atomic.Int64 // by node: how long after begun it last answered
	lost  []atomic.Int64 // by node: how long after begun it was last found unreachable

	mu    sync.Mutex
	asked []*stamp // unanswered questions
}

// stamp is a question under way: the memory for its head, and what is reported about it
// while it is unanswered.
type stamp struct {
	head  [headBytes]byte
	at    int // its index among the session's
	node  int
	query peer.Query    // without its body
	begin time.Duration // since the session's begun
}

// Wait describes a node of a job that has not answered for long.
type Wait struct {
	Node string // its id
	What string // the question, with epoch and step
	For  time.Duration
	// Lost reports whether the node can't be reached. Otherwise it may be slow, or wait
	// itself.
	Lost bool
}

// Waits lists the nodes that this one waits for in a job. Each node is listed once, with
// its oldest unanswered question.
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
	s.contact.mu.Lock()
	defer s.contact.mu.Unlock()
	now := time.Since(s.contact.begun)
	for node, id := range s.ids {
		var oldest *stamp
		for _, a := range s.contact.asked {
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

// isLost reports whether a node was found unreachable recently and has not answered
// since. While it is unreachable, attempts keep failing, so the finding stays recent.
func (s *Session) isLost(node int, now time.Duration) bool {
	lost := time.Duration(s.contact.lost[node].Load())
	return lost > time.Duration(s.contact.heard[node].Load()) && now-lost < lostLasts
}

// asks lists a question until it is answered.
func (s *Session) asks(a *stamp, node int, q peer.Query) {
	q.Body = nil
	a.node, a.query, a.begin = node, q, time.Since(s.contact.begun)
	s.contact.mu.Lock()
	defer s.contact.mu.Unlock()
	a.at = len(s.contact.asked)
	s.contact.asked = append(s.contact.asked, a)
}

// answered removes a question from the list. It holds the lock, since others read the
// list.
func (s *Session) answered(a *stamp) {
	s.contact.mu.Lock()
	defer s.contact.mu.Unlock()
	last := len(s.contact.asked) - 1
	s.contact.asked[a.at] = s.contact.asked[last]
	s.contact.asked[a.at].at = a.at
	s.contact.asked[last], s.contact.asked = nil, s.contact.asked[:last]
	a.query = peer.Query{}
}
