package api

// ImportRequest asks a node to cut a graph that it can read into a dataset.
type ImportRequest struct {
	Name string `json:"name"`
	// Source is an absolute path on the node's machine.
	Source string `json:"source"`
	Format string `json:"format,omitempty"` // "" is auto
	DatasetOptions
}

// GenerateRequest asks a node to make a graph up: one of a kind, or a preset.
type GenerateRequest struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind,omitempty"` // rmat or sbm
	Vertices    uint64   `json:"vertices,omitempty"`
	Edges       uint64   `json:"edges,omitempty"`
	Features    int      `json:"features,omitempty"`
	Classes     int      `json:"classes,omitempty"`
	Communities int      `json:"communities,omitempty"`
	Inside      *float64 `json:"inside,omitempty"`    // null: the kind's own
	Homophily   *float64 `json:"homophily,omitempty"` // null: the kind's own
	Preset      string   `json:"preset,omitempty"`    // arxiv, reddit or products
	Scale       float64  `json:"scale,omitempty"`     // of the preset, 0: whole
	DatasetOptions
}

// DatasetOptions say how a graph is cut and kept, wherever it comes from.
type DatasetOptions struct {
	Shards      int    `json:"shards,omitempty"`      // 0: by the graph's size
	Partitioner string `json:"partitioner,omitempty"` // "" is auto
	DType       string `json:"dtype,omitempty"`       // "" is f32
	// Replicas counts the copies beside the owner's; null: 1.
	Replicas   *int   `json:"replicas,omitempty"`
	Memory     uint64 `json:"memory,omitempty"` // bytes, 0: the node's own bound
	Undirected bool   `json:"undirected,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`
}

// Dataset is a graph that the mesh holds in shards.
type Dataset struct {
	Name     string `json:"name"`
	Stage    string `json:"stage"` // importing, placing or ready
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Splits   int    `json:"splits"`
	// SplitSizes has one entry for each of the splits.
	SplitSizes   []SplitSizes   `json:"split_sizes"`
	DType        string         `json:"dtype"`
	Shards       []DatasetShard `json:"shards"`
	EdgeCut      uint64         `json:"edge_cut"` // edges between shards
	EdgeCutShare float64        `json:"edge_cut_share"`
	// The balances are the largest shard over the average one.
	Balance         float64 `json:"balance"` // by vertices
	BalanceEdges    float64 `json:"balance_edges"`
	BalanceTraining float64 `json:"balance_training"`
	Partitioner     string  `json:"partitioner"`
	Seed            uint64  `json:"seed"`
	// Problems are sentences, without a full stop, as in Status.
	Problems []string `json:"problems"`
}

// SplitSizes counts the vertices of a split's parts.
type SplitSizes struct {
	Train uint64 `json:"train"`
	Val   uint64 `json:"val"`
	Test  uint64 `json:"test"`
}

// DatasetShard is one shard. Owner and Replicas are names of nodes.
type DatasetShard struct {
	ID       int      `json:"id"`
	Vertices uint64   `json:"vertices"`
	Edges    uint64   `json:"edges"`
	Halo     uint64   `json:"halo"` // distinct sources outside of it
	Bytes    uint64   `json:"bytes"`
	SHA256   string   `json:"sha256"`
	Owner    string   `json:"owner"` // "" while nobody has it
	Replicas []string `json:"replicas"`
}

// DatasetSummary is one line of `hopmesh dataset list`.
type DatasetSummary struct {
	Name     string `json:"name"`
	Stage    string `json:"stage"`
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Shards   int    `json:"shards"`
	Bytes    uint64 `json:"bytes"` // of each shard once
	Problems int    `json:"problems"`
}

// DatasetEvent is one line of the answer to an import, a generation or a
// verification. Exactly one field is set, or none in a line that only shows that
// the daemon is there. A line with Dataset, Done or Error is the last.
type DatasetEvent struct {
	Progress *Progress  `json:"progress,omitempty"`
	Forecast *Forecast  `json:"forecast,omitempty"`
	Note     string     `json:"note,omitempty"` // a sentence without a full stop
	Dataset  *Dataset   `json:"dataset,omitempty"`
	Done     *Done      `json:"done,omitempty"`
	Error    *ErrorBody `json:"error,omitempty"`
}

// ErrorBody is an *Error inside a stream, whose HTTP status is long sent.
type ErrorBody struct {
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// Progress is how far a stage has come. Total is 0 where it can't be known.
type Progress struct {
	Stage string `json:"stage"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
	Unit  string `json:"unit"` // "edges", "vertices", "bytes"...
}

// Forecast is what an import is expected to need and to make.
type Forecast struct {
	Vertices    uint64 `json:"vertices"`
	Edges       uint64 `json:"edges"` // at most
	Partitioner string `json:"partitioner"`
	Shards      int    `json:"shards"`
	ShardBytes  uint64 `json:"shard_bytes"` // of an average shard, at most
	PeakMemory  uint64 `json:"peak_memory"`
	Scratch     uint64 `json:"scratch"` // bytes on disk beside the shards, meanwhile
	// CutAtMost is the share of edges that a random cut would cut.
	CutAtMost float64 `json:"cut_at_most"`
	Replicas  int     `json:"replicas"`
}
