package peers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
)

const (
	// answerPatience is how long an answer may take to begin, from when it was first
	// asked for, whatever else its node does meanwhile.
	answerPatience = 10 * time.Minute
	// offerPatience is that for what nodes make together. Where a step is the whole graph,
	// that may be all that another computes in an epoch. A node that dies meanwhile is
	// noticed as ever: its connection ends, and the plan goes on without it.
	offerPatience = 24 * time.Hour
	// patience is for how long a node is asked again that answers nothing at all, though
	// it says that it is there, and lostPatience for how long one that can't be reached.
	// Before that its connection has to be given up, which takes about as long.
	patience     = time.Minute
	lostPatience = 20 * time.Second
	// Between two attempts passes firstPause, then twice as much each time.
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// patienceFor is how long the answer to a question may take to begin.
func patienceFor(q strategy.Query) time.Duration {
	if q.Service == strategy.Offers {
		return offerPatience
	}
	return answerPatience
}

var stamps = sync.Pool{New: func() any { return new(stamp) }}

// Ask implements strategy.Peers.
func (s *Session) Ask(ctx context.Context, node int, q strategy.Query, buf []byte) ([]byte, error) {
	switch {
	case node < 0 || node >= len(s.ids):
		return nil, fmt.Errorf("ask node %d of %d", node, len(s.ids))
	case node == s.self:
		return nil, fmt.Errorf("node %s asks itself for %s", s.names[node], what(q))
	case q.Kind >= strategy.Kinds || q.Service == 0 || q.Service >= services:
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
	begin := time.Since(s.begun)
	answer, err := s.registry.mesh.Fetch(ctx, s.ids[node], ask)
	if err != nil {
		answer, err = s.again(ctx, node, q, ask, begin, err)
	}
	if err != nil {
		return nil, err
	}
	s.heard[node].Store(int64(time.Since(s.begun)))
	q.Tally.Count(q.Kind, strategy.QueryFraming+len(q.Body)+strategy.AnswerFraming+len(answer))
	return answer, nil
}

// again asks a node once more that failed to answer, until it does, or says no, or has
// answered nothing at all for too long, or not this.
func (s *Session) again(ctx context.Context, node int, q strategy.Query, ask mesh.Question, begin time.Duration, err error) (answer []byte, _ error) {
	trouble := time.Since(s.begun) // since when it fails
	word := trouble                // since when nothing at all comes of that node
	early := error(nil)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		switch now := time.Since(s.begun); {
		case s.ended(ctx) != nil:
			return nil, fmt.Errorf("ask node %s for %s: %w", s.names[node], what(q), s.ended(ctx))
		case final(err):
			return nil, s.refused(node, q, err)
		case mesh.RefusalOf(err) == reasonEarly: // a sign of life
			s.heard[node].Store(int64(now))
			early = err
		}
		if now := time.Since(s.begun); unreached(err) {
			s.lost[node].Store(int64(now))
		} else {
			word = now
		}
		switch now := time.Since(s.begun); {
		case now-begin >= patienceFor(q):
			return nil, s.silent(node, q, now-begin, cmp.Or(early, err))
		case now-max(trouble, time.Duration(s.heard[node].Load())) >= patience:
			return nil, s.silent(node, q, now-begin, err)
		case now-max(word, time.Duration(s.heard[node].Load())) >= lostPatience:
			return nil, s.silent(node, q, now-begin, fmt.Errorf("%w: %w", strategy.ErrUnreached, err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		ask.Patience = max(patienceFor(q)-(time.Since(s.begun)-begin), lastPause)
		if answer, err = s.registry.mesh.Fetch(ctx, s.ids[node], ask); err == nil {
			return answer, nil
		}
	}
}
