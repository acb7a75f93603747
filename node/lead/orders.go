package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

// Plan is what orders need of the replicated plan.
type Plan interface {
	State() *plan.State
	Changed() <-chan struct{}
	IsLeader() bool
	// Leader is the node that leads as far as this one knows, and Silence for how long
	// it has not been heard from.
	Leader() string
	Silence() time.Duration
}

// Mesh is what orders need of the mesh.
type Mesh interface {
	ID() string
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
	Member(id string) (mesh.Member, bool)
}

var (
	_ Plan = (*consensus.Consensus)(nil)
	_ Mesh = (*mesh.Mesh)(nil)
)

const (
	// patience bounds how long an order waits for a leader.
	patience = 10 * time.Second
	// retryEvery is how often to try again while nothing is heard of a change.
	retryEvery = 500 * time.Millisecond
	// mostSilence is how long a node hears nothing of a leader that is well: several of
	// its heartbeats. Raft itself gives a leader up at some time after.
	mostSilence = 2 * time.Second
)

// ErrNoLeader is the error of an order that found no leader in time.
var ErrNoLeader = errors.New("no leader was found within 10 s: more than half of the voters do not answer; `hopmesh members` shows who")

// Orders carries orders from this node to the leader, and runs the orders of other nodes while
// this node leads.
type Orders struct {
	mesh Mesh
	plan Plan
	name string // of this node
	// registered are the names of all orders: two may not have the same.
	registered map[string]bool
	index      *Order[None, Index]
}

// New makes Orders for the node of this name. All orders must be registered before the mesh is
// ready.
func New(m Mesh, p Plan, name string) *Orders {
	o := &Orders{mesh: m, plan: p, name: name, registered: map[string]bool{}}
	o.index = Register(o, "plan-index", Repeatable, func(context.Context, string, None) (Index, error) {
		return Index(p.State().Index), nil
	})
	return o
}

// Repetition decides what happens to an order whose leader dies before it has answered.
type Repetition int

const (
	// Once is for orders that must not run twice: Do returns the leader's failure to answer.
	Once Repetition = iota
	// Repeatable is for orders that change nothing the second time: the next leader is
	// asked as soon as there is one.
	Repeatable
)

// None is the type of what an order takes or returns if it takes or returns nothing.
type None struct{}

// Index is the index of a plan in which the effect of an order can be seen.
type Index uint64

// A Handler runs an order on the leader. from is the proven id of the node that gives it,
// and in has come from that node: the handler checks it.
type Handler[In, Out any] func(ctx context.Context, from string, in In) (Out, error)

// Order is one kind of order, with the types that it takes and returns.
type Order[In, Out any] struct {
	orders     *Orders
	name       string
	repetition Repetition
	run        Handler[In, Out]
}

// Register adds an order, which this node can then do and, while it leads, run for others. It
// panics if the name is in use.
func Register[In, Out any](o *Orders, name string, r Repetition, run Handler[In, Out]) *Order[In, Out] {
	if o.registered[name] {
		panic("lead: two orders are called " + name)
	}
	o.registered[name] = true
	order := &Order[In, Out]{orders: o, name: name, repetition: r, run: run}
	o.mesh.Handle(order.method(), order.serve)
	return order
}

// method is the order's name among the calls that nodes make to each other.
func (o *Order[In, Out]) method() string { return Method(o.name) }

// Method is the call that carries an order, for a node that knows no leader.
func Method(name string) string { return "order:" + name }

// Do makes the leader run the order. While there is no leader, or the one asked has just lost
// leadership, Do waits and asks again, for ten seconds at most; so it does if the leader has taken
// no call, since it has too much to do, or if the order is repeatable and the connection to the
// leader ended before it answered.
func (o *Order[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrNoLeader)
	defer cancel()
	var none Out
	var busy error // of the last try that had an answer: the leader took no call
	late := func() error {
		if busy != nil && errors.Is(context.Cause(ctx), ErrNoLeader) {
			return busy
		}
		return context.Cause(ctx)
	}
	for {
		changed := o.orders.plan.Changed()
		out, err := o.try(ctx, in)
		if ctx.Err() == nil {
			busy = nil
		}
		switch {
		case err == nil:
			return out, nil
		case o.repetition == Repeatable && errors.Is(err, mesh.ErrShutdown):
			// The connection ended under the order: the same leader, or the next one, is
			// asked again.
		case errors.Is(err, mesh.ErrOverload):
			busy = err // who says this has not begun
		case !errors.Is(err, consensus.ErrNotLeader) && mesh.RefusalOf(err) != NotLeader:
			if ctx.Err() != nil {
				return none, late()
			}
			return none, err
		}
		select {
		case <-changed:
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return none, late()
		}
	}
}

// try runs the order on the leader, if there is one that was heard from lately: a silent one
// may never answer, and some orders may be sent only once.
func (o *Order[In, Out]) try(ctx context.Context, in In) (out Out, err error) {
	leader := o.orders.Leader()
	switch leader {
	case "":
		return out, consensus.ErrNotLeader
	case o.orders.mesh.ID():
		return o.perform(ctx, leader, in)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("give the order %s: %w", o.name, err)
	}
	answer, err := o.forward(ctx, leader, body)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("read what the leader answers to the order %s: %w", o.name, err)
	}
	return out, nil
}

// forward sends the order to another node. If the order is repeatable, it gives up as soon as
// that node no longer leads.
func (o *Order[In, Out]) forward(ctx context.Context, leader string, body []byte) ([]byte, error) {
	if o.repetition != Repeatable {
		return o.orders.mesh.Call(ctx, leader, o.method(), body)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for o.orders.plan.Leader() == leader {
			select {
			case <-o.orders.plan.Changed():
			case <-time.After(retryEvery):
			case <-ctx.Done():
				return
			}
		}
		cancel(consensus.ErrNotLeader)
	}()
	answer, err := o.orders.mesh.Call(ctx, leader, o.method(), body)
	if err != nil && errors.Is(context.Cause(ctx), consensus.ErrNotLeader) {
		err = consensus.ErrNotLeader // whatever it was doing
	}
	return answer, err
}

// perform runs the order here, if this node leads.
func (o *Order[In, Out]) perform(ctx context.Context, from string, in In) (out Out, err error) {
	if !o.orders.plan.IsLeader() {
		return out, consensus.ErrNotLeader
	}
	return o.run(ctx, from, in)
}

// serve runs an order that another node forwards. The mesh bounds its size.
func (o *Order[In, Out]) serve(ctx context.Context, peer string, body []byte) ([]byte, error) {
	var in In
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, mesh.Refuse(Invalid, "the order %s can't be read: %v", o.name, err)
	}
	out, err := o.perform(ctx, peer, in)
	if errors.Is(err, consensus.ErrNotLeader) {
		return nil, mesh.Refuse(NotLeader, "node %s does not lead", o.orders.name)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Leader returns the leader that this node knows and has heard from lately, or "". It is also ""
// if gossip reports the leader as failed, since a call to it might never return.
func (o *Orders) Leader() string {
	if o.plan.Silence() >= mostSilence {
		return ""
	}
	leader := o.plan.Leader()
	if m, in := o.mesh.Member(leader); in && m.Status != mesh.Alive && leader != o.mesh.ID() {
		return ""
	}
	return leader
}

// Index returns the index of the leader's plan. A node that has read less of the plan may
// act on what is long past.
func (o *Orders) Index(ctx context.Context) (uint64, error) {
	index, err := o.index.Do(ctx, None{})
	return uint64(index), err
}

// CatchUp waits until this node has read as much of the plan as the leader had.
func (o *Orders) CatchUp(ctx context.Context) error {
	index, err := o.Index(ctx)
	if err != nil {
		return err
	}
	return o.ReadUpTo(ctx, Index(index))
}

// ReadUpTo waits until this node has read the plan up to an index.
func (o *Orders) ReadUpTo(ctx context.Context, index Index) error {
	for {
		changed := o.plan.Changed()
		if o.plan.State().Index >= uint64(index) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Commit does an order and waits until this node's plan shows its effect.
func Commit[In any](ctx context.Context, order *Order[In, Index], in In) error {
	index, err := order.Do(ctx, in)
	if err != nil {
		return err
	}
	return order.orders.ReadUpTo(ctx, index)
}
