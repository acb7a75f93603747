package deal

// A Group is a set of roots that a node computes together: one chain of blocks.
type Group struct {
	Roots []uint32
	// Grain is the shard of all roots, where gradients are added up in the order of
	// shards (Settings.Deterministic); else -1.
	Grain int
	// Where models travel, the group is computed at stop Slot of the tour of Model,
	// which comes from node From before it; From is -1 where the model is local
	// already. Otherwise Slot and Model are 0 and From is -1.
	Slot, Model, From int
}

// A Dealer assigns the roots of a step to nodes. It depends on what all nodes know, so
// that each can compute it for any node. One goroutine at a time uses it; Deal for
// different steps may come in any order between two calls of Note.
type Dealer interface {
	// Deal sets to to the groups of a node, in the order of computing. The batch, in
	// its order, is dealt to all nodes without loss or repetition, and a group may be
	// empty. The memory of groups in to is reused.
	Deal(to []Group, batch []uint32, node int) []Group
	// Note records the time of each epoch, as all nodes agree on it; the deals of the
	// next epochs may depend on it.
	Note(seconds float64)
	// Tuning returns the result of the calls of Note; Restore sets it, as after a
	// restart.
	Tuning() Tuning
	Restore(Tuning)
}

// Untimed is embedded in a Dealer that does not depend on the times of epochs.
type Untimed struct{}

// Note implements Dealer.
func (Untimed) Note(float64) {}

// Tuning implements Dealer.
func (Untimed) Tuning() Tuning { return Tuning{} }

// Restore implements Dealer.
func (Untimed) Restore(Tuning) {}

// A Guide is a Dealer whose models travel, and may travel on from step to step. Where
// they differ from each other, the first group of a step receives a model, too.
type Guide interface {
	Dealer
	// After returns the node that holds a model when the step of a batch is done.
	After(batch []uint32, model int) int
}

// Tuning is what a dealer has learnt from the times of epochs: how many slots a step
// has (LeapGNN's T), and the state of the search. The zero Tuning is that of a job that
// begins.
type Tuning struct {
	// Nodes and Members are the number and the identities (Layout.Members) of the nodes
	// it was found with: with others it begins anew.
	Nodes   int     `json:"nodes,omitempty"`
	Members uint64  `json:"members,omitempty"`
	Slots   int     `json:"slots,omitempty"`
	Best    float64 `json:"best,omitempty"` // seconds of an epoch with the fastest slots so far
	Epochs  int     `json:"epochs,omitempty"`
	Frozen  bool    `json:"frozen,omitempty"`
	// Seen are the seconds of epochs with as many slots as now; 0: not yet.
	Seen [2]float64 `json:"seen,omitzero"`
}
