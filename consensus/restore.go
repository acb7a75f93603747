package consensus

import (
	"fmt"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Restore begins a plan from a backup in empty stores, with the node id as its only voter. Other
// nodes may still have logs of the plan that was lost, which may have gone on after the backup. So
// term and the state's index must be above all that any node has seen: a node that comes back then
// drops what it has, and takes this plan. The caller closes the stores.
func Restore(stores Stores, id string, state *plan.State, term uint64) error {
	has, err := raft.HasExistingState(stores.Log, stores.Stable, stores.Snapshots)
	if err != nil {
		return fmt.Errorf("look for a plan: %w", err)
	}
	if has {
		return ErrHasState
	}
	if _, in := state.Members[id]; !in {
		return fmt.Errorf("%s: %w", id, plan.ErrNoMember)
	}
	// Raft keeps its term under this name, and refuses a snapshot of a later one.
	if err := stores.Stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return fmt.Errorf("restore the plan: %w", err)
	}
	_, nowhere := raft.NewInmemTransport(raft.ServerAddress(id))
	voters := raft.Configuration{Servers: []raft.Server{voter(id)}}
	sink, err := stores.Snapshots.Create(1, state.Index, term, voters, state.Index, nowhere)
	if err == nil {
		err = snapshot{state}.Persist(sink)
	}
	if err != nil {
		return fmt.Errorf("restore the plan: %w", err)
	}
	return nil
}
