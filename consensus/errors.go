package consensus

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

var (
	// ErrNotLeader means that nothing was done, because another node leads or none
	// does. Asking the leader is safe.
	ErrNotLeader = errors.New("this node does not lead")
	// ErrUncertain means that leadership was lost while a change was under way.
	ErrUncertain = errors.New("leadership was lost while the change was under way: it may or may not take effect; look before you repeat it")
	// ErrNoSuccessor means that leadership can't be handed over.
	ErrNoSuccessor = errors.New("no other voter is alive to lead")
	// ErrClosed means that this node is stopping.
	ErrClosed = errors.New("this node has stopped taking part in decisions")
	// ErrDamaged means that what the node must remember is lost in part. It can't
	// take part under its id any more: it may have promised what it has forgotten.
	ErrDamaged = errors.New("is damaged")
	// ErrNoState means that there is nothing to recover from.
	ErrNoState = errors.New("there is no plan on this node: recover where a node has been a member before")
)

// translate turns Raft's words into this package's.
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
