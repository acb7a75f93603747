package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"golang.org/x/sync/semaphore"
)

// Consensus is this node's participation in Raft. All methods are safe for concurrent
// use.
type Consensus struct {
	cfg     Config
	raft    *raft.Raft
	net     *cautious
	fsm     *fsm
	changes *signal
	calls   *calls
	work    work

	ready  atomic.Uint64 // the term before which everything is applied, if this node leads it
	led    atomic.Int64  // when this node last led, or began to take part, in Unix nanoseconds
	hint   chan struct{}
	spread chan struct{}

	failure  failure
	ending   ending
	lack     atomic.Pointer[error]
	attempts attempts
}

// failure is why this node can't follow the plan any more.
type failure struct {
	once sync.Once
	ed   chan struct{} // closed once it has failed
	err  error         // set before that
}

// ending is the end of Raft.
type ending struct {
	once    sync.Once
	began   chan struct{} // closed first
	stopped raft.Future
}

// State returns the plan as this node knows it. It never blocks.
func (c *Consensus) State() *plan.State { return c.fsm.state.Load() }

// Changed returns a channel that is closed at the next change of State, Servers, Leader
// or IsLeader. Get the channel before reading them, so that no change in between is
// missed.
func (c *Consensus) Changed() <-chan struct{} { return c.changes.wait() }

// Apply changes the plan and returns the state right after the change, once it is
// committed and applied here. If the plan refuses the change, Apply returns the plan's
// error and nothing changes. plan.ErrNotAllKnow means that a member is of a version that would
// have to stop at the command: nothing was proposed. ErrNotLeader means that nothing was done. After
// ErrUncertain, or when ctx ends, the change may or may not take effect.
func (c *Consensus) Apply(ctx context.Context, cmd plan.Command) (*plan.State, error) {
	if !c.IsLeader() {
		return nil, ErrNotLeader
	}
	return c.propose(ctx, cmd)
}

func (c *Consensus) propose(ctx context.Context, cmd plan.Command) (*plan.State, error) {
	if err := c.State().May(cmd); err != nil {
		return nil, err
	}
	data, err := plan.Encode(cmd)
	if err != nil {
		return nil, err
	}
	got, err := call(ctx, c.calls, func() (outcome, error) {
		f, err := c.enqueue(cmd, data, patience(ctx))
		if errors.Is(err, plan.ErrNotAllKnow) {
			return outcome{err: err}, nil
		}
		if err == nil {
			err = f.Error()
		}
		if err != nil {
			return outcome{}, err
		}
		o, _ := f.Response().(outcome) // the FSM returns nothing else
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	if got.err != nil {
		return nil, got.err
	}
	nudge(c.spread)
	return got.state, nil
}

// enqueue hands a command to Raft. Before one that the plan has not needed so far, everything under way
// is waited for: a node that does not know the command may be coming in.
func (c *Consensus) enqueue(cmd plan.Command, data []byte, patience time.Duration) (raft.ApplyFuture, error) {
	share := int64(1)
	if c.State().New(cmd) {
		share = whole
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.calls.order.Acquire(ctx, share) != nil {
		return nil, raft.ErrEnqueueTimeout
	}
	defer c.calls.order.Release(share)
	if share < whole {
		return c.raft.Apply(data, patience), nil
	}
	if err := c.raft.Barrier(patience).Error(); err != nil {
		return nil, err
	}
	if err := c.State().May(cmd); err != nil {
		return nil, err
	}
	return c.raft.Apply(data, patience), nil
}

// Leader returns the id of the leader as far as this node knows, or "".
func (c *Consensus) Leader() string {
	_, id := c.raft.LeaderWithID()
	return string(id)
}

// Silence returns how long this node has not heard from a leader. It is zero on the
// leader itself.
func (c *Consensus) Silence() time.Duration {
	if c.raft.State() == raft.Leader {
		return 0
	}
	last := time.Unix(0, c.led.Load())
	if heard := c.raft.LastContact(); heard.After(last) {
		last = heard
	}
	return time.Since(last)
}

// IsLeader reports whether this node leads and has applied everything committed before
// its term, so that its State is current.
func (c *Consensus) IsLeader() bool {
	return !errors.Is(c.Err(), ErrDamaged) && c.raft.State() == raft.Leader && c.ready.Load() == c.raft.CurrentTerm()
}

// Term returns Raft's term, which grows with every election.
func (c *Consensus) Term() uint64 { return c.raft.CurrentTerm() }

// Barrier waits until everything that was committed before is applied. It returns an
// error unless this node leads.
func (c *Consensus) Barrier(ctx context.Context) error {
	return c.await(ctx, func() raft.Future { return c.raft.Barrier(patience(ctx)) })
}

// Servers returns Raft's own configuration, in no particular order.
func (c *Consensus) Servers() []plan.Server {
	// This future is already complete and cannot fail.
	all := c.raft.GetConfiguration().Configuration().Servers
	list := make([]plan.Server, 0, len(all))
	for _, s := range all {
		list = append(list, plan.Server{ID: string(s.ID), Voter: s.Suffrage == raft.Voter})
	}
	return list
}

// AppliedIndex returns the index of the last log entry applied on this node.
func (c *Consensus) AppliedIndex() uint64 { return c.raft.AppliedIndex() }

// Hint asks the leader's loop, if it runs on this node, for a round soon. It never
// blocks.
func (c *Consensus) Hint() { nudge(c.hint) }

// Failed returns a channel that is closed when this node can no longer follow the plan.
// Err then returns the cause.
func (c *Consensus) Failed() <-chan struct{} { return c.failure.ed }

// Err returns nil until Failed is closed, then the cause.
func (c *Consensus) Err() error {
	select {
	case <-c.failure.ed:
		return c.failure.err
	default:
		return nil
	}
}

// Lack returns what this machine lacks while this node can't write to the plan's log, and therefore
// takes no part in decisions; else nil.
func (c *Consensus) Lack() error {
	if err := c.lack.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *Consensus) fail(err error) {
	c.failure.once.Do(func() {
		c.failure.err = err
		close(c.failure.ed)
	})
}

// DigestAt returns the digest of the plan right after the command at an index, if this node
// remembers it.
func (c *Consensus) DigestAt(index uint64) (digest string, known bool) { return c.fsm.recent.at(index) }

// Condemn makes this node stop taking part, because its plan is wrong: why says how that is
// known. Failed is closed, and Err is ErrDamaged.
func (c *Consensus) Condemn(why string) {
	c.fail(fmt.Errorf("the plan of this node %w (%s)", ErrDamaged, why))
}

// nudge sends a token to a channel of capacity one unless one is already there.
func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// patience returns how long Raft may take to accept a request.
func patience(ctx context.Context) time.Duration {
	const most = 10 * time.Second
	if d, ok := ctx.Deadline(); ok {
		return max(min(time.Until(d), most), time.Millisecond)
	}
	return most
}

// await waits for one of Raft's futures.
func (c *Consensus) await(ctx context.Context, ask func() raft.Future) error {
	_, err := call(ctx, c.calls, func() (struct{}, error) { return struct{}{}, ask().Error() })
	return err
}

// calls counts the requests to Raft under way. Raft answers every accepted request
// while it runs, but not all of them once it shuts down. So it is shut down only when
// they are done.
type calls struct {
	// order is held as a whole while nothing may get between two requests. It is no mutex: who
	// waits for one stops virtual time.
	order  *semaphore.Weighted
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// whole is all of order, of which each other request holds one.
const whole = 1 << 30

func newCalls() *calls { return &calls{order: semaphore.NewWeighted(whole)} }

// call runs a request to Raft, which may block, and stops waiting for it when ctx ends.
func call[T any](ctx context.Context, c *calls, ask func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return none, ErrClosed
	}
	done := make(chan result, 1)
	c.wg.Go(func() {
		v, err := ask()
		done <- result{v, err}
	})
	c.mu.Unlock()
	select {
	case r := <-done:
		return r.value, translate(r.err)
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for raft: %w", context.Cause(ctx))
	}
}

// close refuses further requests.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
