package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh"
)

// Operations change the plan, so they run on the leader. Any node takes them,
// and passes them on.
const (
	opAdmit       = "admit"
	opRenew       = "renew"
	opCreateToken = "create-token"
	opRevokeToken = "revoke-token"
	opLeave       = "leave"
	opForceLeave  = "force-leave"
	opPlanIndex   = "plan-index"

	opReserveDataset = "reserve-dataset"
	opDefineDataset  = "define-dataset"
	opGiveUpDataset  = "give-up-dataset"
	opAbortDataset   = "abort-dataset"
	opRemoveDataset  = "remove-dataset"
	opHoldShards     = "hold-shards"
	opLoseShards     = "lose-shards"

	opCreateJob    = "create-job"
	opStopJob      = "stop-job"
	opResumeJob    = "resume-job"
	opRemoveJob    = "remove-job"
	opCommitEpochs = "commit-epochs"
	opFinishJob    = "finish-job"
	opRenewJob     = "renew-job"
)

// order is an operation on its way to the leader.
type order struct {
	Op   string          `json:"op"`
	Body json.RawMessage `json:"body"`
}

// Reasons of refusals that callers tell apart.
const (
	reasonNotLeader = "not-leader"
	reasonNotFound  = "not-found"
	reasonConflict  = "conflict"
	reasonInvalid   = "invalid"
)

// leaderTimeout bounds how long an operation waits for a leader.
const leaderTimeout = 10 * time.Second

var errNoLeader = errors.New("no leader was found within 10 s: more than half of the voters do not answer; `hopmesh members` shows who")

// atLeader runs an operation where the leader is. While there is none, or the
// one asked has just lost its office, it waits and asks again; once a leader may
// have begun, it does not, unless the operation is repeatable.
func (m *member) atLeader(ctx context.Context, op string, in, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, leaderTimeout, errNoLeader)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	for {
		changed := m.plan.Changed()
		answer, err := m.try(ctx, op, body)
		switch {
		case err == nil && out != nil:
			return json.Unmarshal(answer, out)
		case err == nil:
			return nil
		case !errors.Is(err, consensus.ErrNotLeader) && mesh.RefusalOf(err) != reasonNotLeader:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		select {
		case <-changed:
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *member) try(ctx context.Context, op string, body []byte) ([]byte, error) {
	leader := m.leader() // one that is silent is not asked what can be asked once only
	switch leader {
	case "":
		return nil, consensus.ErrNotLeader
	case m.id.ID():
		return m.perform(ctx, leader, op, body)
	}
	b, err := json.Marshal(order{Op: op, Body: body})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if !repeatable[op] {
		return m.mesh.Call(ctx, leader, callOperator, b)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for m.plan.Leader() == leader {
			select {
			case <-m.plan.Changed():
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
		cancel(consensus.ErrNotLeader)
	}()
	answer, err := m.mesh.Call(ctx, leader, callOperator, b)
	if err != nil && errors.Is(context.Cause(ctx), consensus.ErrNotLeader) {
		err = consensus.ErrNotLeader // whatever it was doing
	}
	return answer, err
}

// repeatable operations change nothing the second time: who waits for a leader that is
// dead asks the next one.
var repeatable = map[string]bool{
	opPlanIndex: true, opCreateJob: true, opStopJob: true, opCommitEpochs: true, opFinishJob: true, opRenewJob: true,
}

// operate is the leader's side of a forwarded operation.
func (m *member) operate(ctx context.Context, peer string, b []byte) ([]byte, error) {
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, mesh.Refuse(reasonInvalid, "the operation can't be read: %v", err)
	}
	answer, err := m.perform(ctx, peer, o.Op, o.Body)
	if errors.Is(err, consensus.ErrNotLeader) {
		return nil, mesh.Refuse(reasonNotLeader, "node %s does not lead", m.id.Name())
	}
	return answer, err
}

// perform runs an operation here. from is the proven node that brought it.
func (m *member) perform(ctx context.Context, from, op string, body []byte) ([]byte, error) {
	if !m.plan.IsLeader() {
		return nil, consensus.ErrNotLeader
	}
	switch op {
	case opAdmit:
		return run(ctx, body, m.leaderAdmit)
	case opRenew:
		return run(ctx, body, func(ctx context.Context, csr []byte) ([][]byte, error) { return m.id.Sign(csr, from, time.Now()) })
	case opCreateToken:
		return run(ctx, body, m.leaderCreateToken)
	case opRevokeToken:
		return run(ctx, body, m.leaderRevokeToken)
	case opLeave:
		return run(ctx, body, func(ctx context.Context, _ none) (none, error) { return m.leaderLeave(ctx, from) })
	case opForceLeave:
		return run(ctx, body, m.leaderForceLeave)
	case opPlanIndex:
		return run(ctx, body, func(context.Context, none) (uint64, error) { return m.plan.State().Index, nil })
	case opReserveDataset:
		return runFrom(ctx, body, from, m.leaderReserve)
	case opDefineDataset:
		return runFrom(ctx, body, from, m.leaderDefine)
	case opGiveUpDataset:
		return runFrom(ctx, body, from, m.leaderGiveUp)
	case opAbortDataset:
		return runFrom(ctx, body, from, m.leaderAbort)
	case opRemoveDataset:
		return run(ctx, body, m.leaderRemove)
	case opHoldShards:
		return runFrom(ctx, body, from, m.leaderHold)
	case opLoseShards:
		return runFrom(ctx, body, from, m.leaderLose)
	case opCreateJob:
		return run(ctx, body, m.leaderCreateJob)
	case opStopJob:
		return run(ctx, body, m.leaderStopJob)
	case opResumeJob:
		return run(ctx, body, m.leaderResumeJob)
	case opRemoveJob:
		return run(ctx, body, m.leaderRemoveJob)
	case opCommitEpochs:
		return runFrom(ctx, body, from, m.leaderCommit)
	case opFinishJob:
		return runFrom(ctx, body, from, m.leaderFinish)
	case opRenewJob:
		return runFrom(ctx, body, from, m.leaderRenewJob)
	}
	return nil, mesh.Refuse(reasonInvalid, "node %s runs a version of hopmesh that does not know the operation %q", m.id.Name(), op)
}

// none is what an operation takes or gives that takes or gives nothing.
type none struct{}

func run[In, Out any](ctx context.Context, body []byte, f func(context.Context, In) (Out, error)) ([]byte, error) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, mesh.Refuse(reasonInvalid, "the operation can't be read: %v", err)
	}
	out, err := f(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// runFrom is run for what depends on the node that asks, or is only its own to
// say.
func runFrom[In, Out any](ctx context.Context, body []byte, from string, f func(context.Context, In, string) (Out, error)) ([]byte, error) {
	return run(ctx, body, func(ctx context.Context, in In) (Out, error) { return f(ctx, in, from) })
}
