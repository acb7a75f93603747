package plan

type (
	// ReserveDataset keeps a name for a dataset that a node is about to import.
	// Repeating it changes nothing.
	ReserveDataset struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Importer string `json:"importer"`
		Replicas int    `json:"replicas"`
	}

	// DefineDataset says what the import has made. Its importer holds all of it.
	// Repeating it changes nothing.
	DefineDataset struct {
		ID       string       `json:"id"`
		Importer string       `json:"importer"`
		About    About        `json:"about"`
		Shards   []ShardAbout `json:"shards"`
	}

	// PlaceShards is the leader's word on who shall hold what, as Place computes it.
	// Who holds a shard already and shall own it does so at once; who held one
	// before goes on until all who shall have it do.
	PlaceShards struct {
		ID    string   `json:"id"`
		Nodes []string `json:"nodes"`
		// Wanted has a row for each shard, of indices into Nodes, the owner first. Only
		// the row of a shard that nobody holds may be empty.
		Wanted [][]int `json:"wanted"`
		// Away are the ids of nodes that don't serve: they own nothing that another
		// holds, from now on and until others have fetched what is wanted.
		Away []string `json:"away,omitempty"`
	}

	// HoldShards is a node's word that it has these shards on disk, whole and
	// verified. Of those that are not wanted of it, it is ignored, unless nobody else
	// holds them.
	HoldShards struct {
		ID     string `json:"id"`
		Node   string `json:"node"`
		Shards []int  `json:"shards"`
	}

	// LoseShards is a node's word that its files of these shards are damaged or gone.
	// If they were wanted of it, they still are; what it owned falls to the next
	// holder.
	LoseShards struct {
		ID     string `json:"id"`
		Node   string `json:"node"`
		Shards []int  `json:"shards"`
	}

	// RemoveDataset forgets a dataset, at any stage.
	RemoveDataset struct {
		ID string `json:"id"`
	}
)

func (ReserveDataset) kind() Kind { return KindReserveDataset }
func (DefineDataset) kind() Kind  { return KindDefineDataset }
func (PlaceShards) kind() Kind    { return KindPlaceShards }
func (HoldShards) kind() Kind     { return KindHoldShards }
func (LoseShards) kind() Kind     { return KindLoseShards }
func (RemoveDataset) kind() Kind  { return KindRemoveDataset }
