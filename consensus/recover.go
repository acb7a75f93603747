package consensus

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Recover makes voters the only voting nodes, after more than half were lost for good.
// It is run on every survivor with the same voters while all are stopped. Every entry
// of this node's log becomes committed, whether it was before or not. The caller closes
// the stores.
func Recover(stores Stores, id string, voters []string, log *slog.Logger) error {
	hlog := newLogger(log)
	conf := raftConfig(id, hlog)
	has, err := raft.HasExistingState(stores.Log, stores.Stable, stores.Snapshots)
	if err != nil {
		return fmt.Errorf("look for a plan to recover: %w", err)
	}
	if !has {
		return ErrNoState
	}
	state, err := replay(stores)
	if err != nil {
		return err
	}
	var next raft.Configuration
	for _, v := range voters {
		if _, in := state.Members[v]; !in {
			return fmt.Errorf("%s: %w in this node's plan: name the ids that {members} shows; a node that is too far behind to know them needs no recovery", v, plan.ErrNoMember)
		}
		next.Servers = append(next.Servers, voter(v))
	}
	var broken error
	f := newFSM(func() {}, func(err error) { broken = err })
	_, nowhere := raft.NewInmemTransport(raft.ServerAddress(id))
	err = raft.RecoverCluster(conf, f, stores.Log, stores.Stable, stores.Snapshots, nowhere, next)
	if broken != nil {
		return broken
	}
	if err != nil {
		return fmt.Errorf("recover the plan: %w", err)
	}
	log.Info("recovered the plan", "voters", voters, "generation", state.Generation, "members", len(state.Members))
	return nil
}

// replay computes the plan from snapshot and log as recovery will, without changing
// anything.
func replay(stores Stores) (*plan.State, error) {
	var broken error
	f := newFSM(func() {}, func(err error) { broken = err })
	_, restored, err := newestSnapshot(stores.Snapshots)
	if err != nil {
		return nil, err
	}
	if restored != nil {
		f.state.Store(restored)
	}
	last, err := stores.Log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read the plan's log: %w", err)
	}
	first, err := stores.Log.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("read the plan's log: %w", err)
	}
	for i := max(first, 1); i <= last; i++ {
		var entry raft.Log
		if err := stores.Log.GetLog(i, &entry); err != nil {
			return nil, fmt.Errorf("read entry %d of the plan's log: %w", i, err)
		}
		if entry.Type == raft.LogCommand && i > f.state.Load().Index {
			f.Apply(&entry)
		}
	}
	return f.state.Load(), broken
}

// newestSnapshot reads the newest readable snapshot, as Raft will when it starts. The
// metadata is nil if there is none.
func newestSnapshot(store raft.SnapshotStore) (*raft.SnapshotMeta, *plan.State, error) {
	list, err := store.List()
	if err != nil {
		return nil, nil, fmt.Errorf("list the plan's snapshots: %w", err)
	}
	var failures []error
	for _, meta := range list {
		s, err := openSnapshot(store, meta.ID)
		switch {
		case err == nil:
			return meta, s, nil
		case errors.Is(err, plan.ErrUnknownCommand):
			return nil, nil, err
		}
		failures = append(failures, fmt.Errorf("snapshot %s: %w", meta.ID, err))
	}
	return nil, nil, errors.Join(failures...)
}

func openSnapshot(store raft.SnapshotStore, id string) (*plan.State, error) {
	_, from, err := store.Open(id)
	if err != nil {
		return nil, err
	}
	s, err := readSnapshot(from)
	return s, errors.Join(err, from.Close())
}
