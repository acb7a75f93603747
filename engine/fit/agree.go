package fit

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
)

// Agree returns an error, the same on all nodes of a session, if one of them has too little
// memory, and notes on machines much of whose memory will be taken. It tells the session
// which nodes are on one machine.
func Agree(ctx context.Context, s *session.Session, tag exchange.Tag, mine budget.Node, advice []budget.Advice) (notes []string, err error) {
	if s.Alone() {
		return nil, mine.Enough(Advice, advice)
	}
	agreement, err := budget.Agree(ctx, budget.Nodes{
		Names: s.Work.Nodes, Self: s.Work.Self, Instead: Advice, Divides: [budget.Settings]bool{fanout: true},
		Gather: func(ctx context.Context, message []byte) ([][]byte, error) {
			return s.GatherVersioned(ctx, tag, message)
		},
	}, mine, advice)
	if _, short := errors.AsType[*budget.Short](err); short {
		return nil, &session.Agreed{Err: err}
	}
	if err != nil {
		return nil, err
	}
	s.OnMachine, s.InProcess = agreement.OnMachine, agreement.InProcess
	return agreement.Notes, nil
}
