package lead

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A Step is one thing that the leader does in each round. It does what it can and leaves the
// rest to the next round.
type Step func(ctx context.Context, s *plan.State) error

// Rounds runs the leader's work: it brings the plan in line with the nodes that exist. Voters
// are left to consensus.
type Rounds struct {
	log   *slog.Logger
	begun chan struct{} // closed by Begin
	state func() *plan.State
	steps []Step
}

// NewRounds makes Rounds that wait for Begin: consensus asks for them before the parts are
// there that do the steps.
func NewRounds(log *slog.Logger) *Rounds { return &Rounds{log: log, begun: make(chan struct{})} }

// Begin sets the steps of every round, in their order.
func (r *Rounds) Begin(state func() *plan.State, steps ...Step) {
	r.state, r.steps = state, steps
	close(r.begun)
}

// Round does one round. It is called again and again while this node leads. A step that fails
// because of one node must not keep the others from theirs.
func (r *Rounds) Round(ctx context.Context) {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return
	}
	if r.state().MeshID == "" {
		return
	}
	for _, step := range r.steps {
		err := step(ctx, r.state())
		if ctx.Err() != nil || errors.Is(err, consensus.ErrNotLeader) {
			return
		}
		if err != nil {
			r.log.Info("the leader's round left something undone", "err", err)
		}
	}
}

// Absences measures how long nodes have not answered, as far as the leader of a term knows.
// Gossip alone is not enough: it knows nothing of a node that went before this one came. Only
// the leader's rounds use it.
type Absences struct {
	terms  func() uint64
	health func(id string) (alive bool, since time.Duration)
	term   uint64
	since  map[string]time.Time
}

// NewAbsences makes Absences by the terms of Raft and what gossip says of nodes.
func NewAbsences(term func() uint64, health func(id string) (alive bool, since time.Duration)) *Absences {
	return &Absences{terms: term, health: health}
}

// Of returns how long a member has not answered, 0 if it does.
func (a *Absences) Of(id string, now time.Time) time.Duration {
	if term := a.terms(); a.term != term || a.since == nil {
		a.term, a.since = term, map[string]time.Time{}
	}
	alive, known := a.health(id)
	if alive {
		delete(a.since, id)
		return 0
	}
	if _, seen := a.since[id]; !seen {
		a.since[id] = now
	}
	return max(known, now.Sub(a.since[id]), 1)
}
