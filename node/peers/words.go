package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
)

// what says in words what is asked for.
func what(q strategy.Query) string {
	switch q.Service {
	case strategy.Rows:
		return "rows of features" + when(q)
	case strategy.Draws:
		return "neighbours of vertices" + when(q)
	case strategy.Skeletons:
		return "the edges and labels of its shards"
	case strategy.Offers:
		return "its part of what all nodes make together" + when(q)
	case strategy.Checkpoint:
		return "the checkpoint to go on from"
	case strategy.Columns:
		return "columns of features" + when(q)
	case strategy.Contexts:
		return "edges of its shards, for those who train in isolation"
	}
	return fmt.Sprintf("an answer of service %d%s", q.Service, when(q))
}

func when(q strategy.Query) string { return fmt.Sprintf(" (epoch %d, step %d)", q.Epoch, q.Step) }

// ended says why there is nothing more to ask, nil if there is.
func (s *Session) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.life.Err() != nil {
		return context.Cause(s.life)
	}
	return nil
}

// final says whether asking again makes no sense.
func final(err error) bool {
	if no, ok := errors.AsType[*mesh.Refusal](err); ok {
		return no.Reason != reasonLater && no.Reason != reasonEarly
	}
	for _, e := range []error{mesh.ErrSuperseded, mesh.ErrUnauthorised, mesh.ErrProtocol, mesh.ErrSelf, mesh.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unreached says whether a question failed without a word of the node that was asked.
func unreached(err error) bool {
	return mesh.RefusalOf(err) == "" && !errors.Is(err, mesh.ErrOverload) && !errors.Is(err, mesh.ErrShutdown)
}

func (s *Session) refused(node int, q strategy.Query, err error) error {
	if no, ok := errors.AsType[*mesh.Refusal](err); ok {
		err = no // the other node's sentence, without how it came
	}
	return fmt.Errorf("ask node %s for %s: %w: %w", s.names[node], what(q), strategy.ErrRefused, err)
}

func (s *Session) silent(node int, q strategy.Query, waited time.Duration, err error) error {
	return fmt.Errorf("node %s has not given %s in %s: %w; start that node again if it is down, and if it runs, look at the network between it and node %s, which asked",
		s.names[node], what(q), waited.Round(time.Second), err, s.names[s.self])
}
