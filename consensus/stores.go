package consensus

import (
	"github.com/hashicorp/raft"
)

// Stores is the state a node must not lose: the log, its votes, and snapshots of the
// plan.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Close     func() error
}

// MemoryStores returns stores that live as long as the process. They survive Close, so
// a test may stop a node and start it again.
func MemoryStores() Stores {
	s := raft.NewInmemStore()
	return Stores{Log: s, Stable: s, Snapshots: raft.NewInmemSnapshotStore(), Close: func() error { return nil }}
}
