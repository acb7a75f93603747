package plan

type (
	// ReserveDataset reserves a name for a dataset that a node is about to import.
	// Repeating it changes nothing.
	ReserveDataset struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Importer string `json:"importer"`
		Replicas int    `json:"replicas"`
	}

	// DefineDataset records the result of an import. Its importer holds all shards, unless
	// it names those who made them. Repeating it changes nothing.
	DefineDataset struct {
		ID       string       `json:"id"`
		Importer string       `json:"importer"`
		About    About        `json:"about"`
		Shards   []ShardAbout `json:"shards"`
		// Makers hold the shards that they made: of each shard, MadeBy has an index into
		// Makers. Both are empty if the importer made all.
		Makers []string `json:"makers,omitempty"`
		MadeBy []int    `json:"made_by,omitempty"`
	}

	// PlaceShards is the leader's decision on which nodes must hold which shards, as
	// computed by Place. A node that already holds a shard it is to own becomes its
	// owner at once. Previous holders keep a shard until all of its wanted holders have
	// it.
	PlaceShards struct {
		ID    string   `json:"id"`
		Nodes []string `json:"nodes"`
		// Wanted has a row for each shard, of indices into Nodes, the owner first. Only
		// the row of a shard that nobody holds may be empty.
		Wanted [][]int `json:"wanted"`
		// Away are the ids of nodes that don't serve. They own no shard that another
		// node holds, from now until others have fetched what is wanted.
		Away []string `json:"away,omitempty"`
	}

	// HoldShards is a node's report that it has these shards on disk, whole and
	// verified. Shards that are not wanted of it are ignored, unless nobody else holds
	// them.
	HoldShards struct {
		ID     string `json:"id"`
		Node   string `json:"node"`
		Shards []int  `json:"shards"`
	}

	// LoseShards is a node's report that its files of these shards are damaged or gone.
	// Shards wanted of it remain wanted; ownership passes to the next holder.
	LoseShards struct {
		ID     string `json:"id"`
		Node   string `json:"node"`
		Shards []int  `json:"shards"`
	}

	// RemoveDataset removes a dataset at any stage.
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
