package consensus

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

var (
	// ErrNotLeader means that nothing was done, because this node does not lead. Asking
	// the leader instead is safe.
	ErrNotLeader = errors.New("this node does not lead")
	// ErrUncertain means that leadership was lost while a change was under way.
	ErrUncertain = errors.New("leadership was lost while the change was under way: it may or may not take effect; look before you repeat it")
	// ErrNoSuccessor means that no other voter can take over leadership.
	ErrNoSuccessor = errors.New("no other voter is alive to lead")
	// ErrClosed means that this node is stopping.
	ErrClosed = errors.New("this node has stopped taking part in decisions")
	// ErrDamaged means that part of this node's Raft state is lost. It must not take
	// part under its id any more, as it may have forgotten a vote or an acknowledged
	// entry.
	ErrDamaged = errors.New("is damaged")
	// ErrNoState means that there is nothing to recover from.
	ErrNoState = errors.New("there is no plan on this node: recover where a node has been a member before")
	// ErrHasState means that a plan can't be restored where there is one.
	ErrHasState = errors.New("there is a plan on this node already: restore where no node has been")
)

// translate maps Raft's errors to this package's.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, raft.ErrLeadershipLost):
		return ErrUncertain
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("raft is busy: %w", context.DeadlineExceeded)
	}
	return fmt.Errorf("raft: %w", err)
}
