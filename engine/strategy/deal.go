package strategy

// A Strategy is one way to share the steps of a job among nodes.
type Strategy interface {
	Name() string
	// New makes what deals a job's batches, or says in one sentence why it can't be
	// dealt so.
	New(l Layout, s Settings) (Dealer, error)
}

// A Group is roots that a node computes together: one chain of blocks.
type Group struct {
	Roots []uint32
	// Grain is the shard that all roots are of, where gradients are added up in the
	// order of shards (Settings.Deterministic); else -1.
	Grain int
	// Where models travel, the group is computed at stop Slot of the tour of Model,
	// which is taken over from node From before it; From is -1 where the model is
	// here already. Else Slot and Model are 0 and From is -1.
	Slot, Model, From int
}

// A Dealer says who computes which roots of a step. It depends on what all nodes
// know, so that each can say it for any node. One goroutine at a time uses it; Deal
// for different steps may come in any order between two calls of Note.
type Dealer interface {
	// Deal sets to to the groups of a node, in the order in which they are computed:
	// the batch, in its order, is dealt to all nodes without loss or repetition, and
	// a group may be empty. The memory of groups in to is used again.
	Deal(to []Group, batch []uint32, node int) []Group
	// Note tells, after each epoch, how long it took, in the words on which all
	// nodes agree; what is dealt in the next epochs may depend on it.
	Note(seconds float64)
	// Tuning is what Note has brought about; Restore sets it, as after a restart.
	Tuning() Tuning
	Restore(Tuning)
}

// A Guide is a Dealer whose models travel, and may travel on from step to step: where
// they differ from each other, the first group of a step, too, has a model to take over.
type Guide interface {
	Dealer
	// After is the node that a model is on when the step of a batch is done.
	After(batch []uint32, model int) int
}

// Tuning is what a dealer has found out from the times of epochs: how many slots a
// step has (LeapGNN's T), and how it came to that. The zero Tuning is that of a job
// that begins.
type Tuning struct {
	// Nodes and Members are how many it was found with, and who they were
	// (Layout.Members): with others it begins anew.
	Nodes   int     `json:"nodes,omitempty"`
	Members uint64  `json:"members,omitempty"`
	Slots   int     `json:"slots,omitempty"`
	Best    float64 `json:"best,omitempty"` // seconds of the fastest epoch
	Epochs  int     `json:"epochs,omitempty"`
	Frozen  bool    `json:"frozen,omitempty"`
}
