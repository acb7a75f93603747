package consensus

import (
	"github.com/hashicorp/raft"
)

// Stores is what a node must not forget: the log, its votes, and snapshots of the
// plan.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Close     func() error
}

// MemoryStores forget when the process ends. They survive Close, so that a test
// may stop a node and start it again.
func MemoryStores() Stores {
	s := raft.NewInmemStore()
	return Stores{Log: s, Stable: s, Snapshots: raft.NewInmemSnapshotStore(), Close: func() error { return nil }}
}
