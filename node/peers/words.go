package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// what describes the question in words.
func what(q peer.Query) string {
	switch q.Service {
	case peer.Rows:
		return "rows of features" + when(q)
	case peer.Draws:
		return "neighbours of vertices" + when(q)
	case peer.Skeletons:
		return "the edges of its shards"
	case peer.Offers:
		return "its part of what all nodes make together" + when(q)
	case peer.Checkpoint:
		return "the checkpoint to go on from"
	case peer.Columns:
		return "columns of features" + when(q)
	case peer.Contexts:
		return "edges of its shards, for those who train in isolation"
	case peer.Labels:
		return "labels of vertices"
	}
	return fmt.Sprintf("an answer of service %d%s", q.Service, when(q))
}

func when(q peer.Query) string { return fmt.Sprintf(" (epoch %d, step %d)", q.Epoch, q.Step) }

// ended returns an error if there is nothing more to ask.
func (s *Session) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.life.Err() != nil {
		return context.Cause(s.life)
	}
	return nil
}

// final reports whether asking again is useless.
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

// unreached reports whether a question failed without any answer from the node that was
// asked.
func unreached(err error) bool {
	return mesh.RefusalOf(err) == "" && !errors.Is(err, mesh.ErrOverload) && !errors.Is(err, mesh.ErrShutdown)
}

func (s *Session) refused(node int, q peer.Query, err error) error {
	if no, ok := errors.AsType[*mesh.Refusal](err); ok {
		err = no // the other node's sentence, without its transport error
	}
	return fmt.Errorf("ask node %s for %s: %w: %w", s.names[node], what(q), peer.ErrRefused, err)
}

func (s *Session) silent(node int, q peer.Query, waited time.Duration, err error) error {
	return fmt.Errorf("node %s has not given %s in %s: %w; start that node again if it is down, and if it runs, look at the network between it and node %s, which asked",
		s.names[node], what(q), waited.Round(time.Second), err, s.names[s.self])
}
