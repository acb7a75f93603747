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
	// Notes are sentences on what was found damaged and repaired at opening.
	Notes []string

	// scrub, if set, repairs what memory knows better than the disk, and reports whether
	// it did.
	scrub func() (bool, error)
	// verified means that everything was read once since it was opened.
	verified bool
}

// MemoryStores returns stores that live as long as the process. They survive Close, so
// a test may stop a node and start it again.
func MemoryStores() Stores {
	s := raft.NewInmemStore()
	return Stores{Log: Sealed(s), Stable: s, Snapshots: raft.NewInmemSnapshotStore(), Close: func() error { return nil }}
}
