package consensus

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// fsm applies the entries that Raft commits to the plan. Raft calls Apply, Snapshot and
// StoreConfiguration from one goroutine, and Restore before that starts or from it.
type fsm struct {
	state   atomic.Pointer[plan.State]
	changed func()
	fail    func(error)
	broken  error // why nothing more can be applied
	recent  recent
}

var (
	_ raft.FSM                = (*fsm)(nil)
	_ raft.ConfigurationStore = (*fsm)(nil)
)

func newFSM(changed func(), fail func(error)) *fsm {
	f := &fsm{changed: changed, fail: fail}
	f.state.Store(new(plan.State))
	return f
}

// outcome is Apply's result for the node that proposed the command.
type outcome struct {
	state *plan.State
	err   error
}

func (f *fsm) Apply(l *raft.Log) any {
	if f.broken != nil {
		return outcome{f.state.Load(), f.broken}
	}
	next, err := plan.Apply(f.state.Load(), l.Index, l.Data)
	if errors.Is(err, plan.ErrUnknownCommand) {
		f.stop(fmt.Errorf("entry %d of the plan's log: %w", l.Index, err))
		return outcome{next, f.broken}
	}
	f.put(next)
	return outcome{next, err}
}

// stop keeps this node from applying or snapshotting anything more, because its state
// would diverge from the other nodes'.
func (f *fsm) stop(err error) {
	f.broken = err
	f.fail(err)
}

// StoreConfiguration exists so that a snapshot may follow a change of voters without a
// command in between.
func (f *fsm) StoreConfiguration(uint64, raft.Configuration) { f.changed() }

func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	return snapshot{f.state.Load()}, nil
}

func (f *fsm) Restore(from io.ReadCloser) error {
	next, err := readSnapshot(from)
	if errors.Is(err, plan.ErrUnknownCommand) {
		f.stop(err)
	}
	if err != nil {
		return err
	}
	f.put(next)
	return nil
}

func (f *fsm) put(next *plan.State) {
	f.state.Store(next)
	f.recent.add(next)
	f.changed()
}

func readSnapshot(from io.Reader) (*plan.State, error) {
	b, err := io.ReadAll(io.LimitReader(from, plan.MaxSnapshot+1))
	if err != nil {
		return nil, fmt.Errorf("read a snapshot of the plan: %w", err)
	}
	return plan.UnmarshalSnapshot(b)
}

// snapshot is an immutable state to be written, whatever is applied meanwhile.
type snapshot struct{ state *plan.State }

func (s snapshot) Persist(to raft.SnapshotSink) error {
	b, err := plan.MarshalSnapshot(s.state)
	if err == nil {
		_, err = to.Write(b)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep a snapshot of the plan: %w", err), to.Cancel())
	}
	return to.Close()
}

func (snapshot) Release() {}
