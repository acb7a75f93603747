package peers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

const (
	// answerPatience is how long an answer may take to begin, counted from the first
	// attempt to ask for it.
	answerPatience = 10 * time.Minute
	// offerPatience is the same for results that nodes compute together. If a step covers
	// the whole graph, the wait may be as long as another node's computation of an epoch.
	// A node that dies meanwhile is noticed anyway: its connection ends, and the plan
	// goes on without it.
	offerPatience = 24 * time.Hour
	// patience is how long a node that is reachable but answers nothing at all is asked
	// again. lostPatience is the same for a node that can't be reached. It covers the
	// time until the connection is given up.
	patience     = time.Minute
	lostPatience = 20 * time.Second
	// The pause between two attempts is firstPause at first and doubles each time.
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// patienceFor returns how long the answer to a question may take to begin.
func patienceFor(q peer.Query) time.Duration {
	if q.Service == peer.Offers {
		return offerPatience
	}
	return answerPatience
}

var stamps = sync.Pool{New: func() any { return new(stamp) }}

// Ask implements peer.Peers.
func (s *Session) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	switch {
	case node < 0 || node >= len(s.ids):
		return nil, fmt.Errorf("ask node %d of %d", node, len(s.ids))
	case node == s.self:
		return nil, fmt.Errorf("node %s asks itself for %s", s.names[node], what(q))
	case q.Kind >= peer.Kinds || q.Service == 0 || q.Service >= services:
		return nil, fmt.Errorf("a question of kind %d for service %d", q.Kind, q.Service)
	case len(q.Body) > mesh.MaxBody:
		return nil, fmt.Errorf("ask node %s for %s: a question of %d bytes is over the limit of %d", s.names[node], what(q), len(q.Body), mesh.MaxBody)
	}
	mark := stamps.Get().(*stamp)
	defer stamps.Put(mark)
	s.asks(mark, node, q)
	defer s.answered(mark)
	limit := min(max(q.Limit, 0), math.MaxUint32)
	head{s.key, q.Service, s.generation, q.Epoch, q.Step, q.Part, uint32(limit)}.append(mark.head[:0])
	ask := mesh.Question{
		Header:  mesh.Header{Kind: onWire[q.Kind], Flags: Flag, Step: q.Step, Count: 1},
		Preface: mark.head[:], Body: q.Body, Into: buf, Limit: limit, Patience: patienceFor(q),
	}
	begin := time.Since(s.contact.begun)
	answer, err := s.registry.mesh.Fetch(ctx, s.ids[node], ask)
	if err != nil {
		answer, err = s.again(ctx, node, q, ask, begin, err)
	}
	if err != nil {
		return nil, err
	}
	s.contact.heard[node].Store(int64(time.Since(s.contact.begun)))
	q.Tally.Count(q.Kind, peer.QueryFraming+len(q.Body)+peer.AnswerFraming+len(answer))
	return answer, nil
}

// again repeats a question that failed, until the node answers or refuses it, or has not
// answered it, or anything at all, for too long.
func (s *Session) again(ctx context.Context, node int, q peer.Query, ask mesh.Question, begin time.Duration, err error) (answer []byte, _ error) {
	trouble := time.Since(s.contact.begun) // how long it has been failing
	word := trouble                        // how long nothing at all has come from that node
	early := error(nil)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		switch now := time.Since(s.contact.begun); {
		case s.ended(ctx) != nil:
			return nil, fmt.Errorf("ask node %s for %s: %w", s.names[node], what(q), s.ended(ctx))
		case final(err):
			return nil, s.refused(node, q, err)
		case mesh.RefusalOf(err) == reasonEarly: // a sign of life
			s.contact.heard[node].Store(int64(now))
			early = err
		}
		if now := time.Since(s.contact.begun); unreached(err) {
			s.contact.lost[node].Store(int64(now))
		} else {
			word = now
		}
		switch now := time.Since(s.contact.begun); {
		case now-begin >= patienceFor(q):
			return nil, s.silent(node, q, now-begin, cmp.Or(early, err))
		case now-max(trouble, time.Duration(s.contact.heard[node].Load())) >= patience:
			return nil, s.silent(node, q, now-begin, err)
		case now-max(word, time.Duration(s.contact.heard[node].Load())) >= lostPatience:
			return nil, s.silent(node, q, now-begin, fmt.Errorf("%w: %w", peer.ErrUnreached, err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		ask.Patience = max(patienceFor(q)-(time.Since(s.contact.begun)-begin), lastPause)
		if answer, err = s.registry.mesh.Fetch(ctx, s.ids[node], ask); err == nil {
			return answer, nil
		}
	}
}
