package graph

import "fmt"

// DType is the type that features are stored as.
type DType string

// The feature types.
const (
	F32  DType = "f32"
	BF16 DType = "bf16"
)

// MaxShards bounds the number of shards of a graph, MaxSplits its number of splits.
const (
	MaxShards = 1024
	MaxSplits = 1024
)

// Manifest describes a dataset stored as shards.
type Manifest struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"` // stored edges: mirrored if requested, then merged
	Weighted bool   `json:"weighted,omitempty"`
	// EdgeFeatures is how many columns of features edges have.
	EdgeFeatures int  `json:"edge_features,omitempty"`
	Features     int  `json:"features"`
	Sparse       bool `json:"sparse,omitempty"` // features are stored as sparse rows
	Classes      int  `json:"classes"`          // or columns of other targets
	// Targets are those of the vertices.
	Targets Targets `json:"targets,omitempty"`
	// Types are those of vertices and edges; nil: there is one.
	Types *Types `json:"types,omitempty"`
	// Splits counts the vertices of each split's parts.
	Splits      []SplitInfo `json:"splits"`
	DType       DType       `json:"dtype"`
	Partitioner string      `json:"partitioner"` // multilevel, stream or random
	Seed        uint64      `json:"seed"`
	Shards      []ShardInfo `json:"shards"`
	// EdgeCut is the number of edges between shards.
	EdgeCut uint64 `json:"edge_cut"`
	// Balance is the size of the largest shard over the average, by vertices, by edges
	// and by training vertices; 1 if there are none.
	Balance         float64  `json:"balance"`
	BalanceEdges    float64  `json:"balance_edges"`
	BalanceTraining float64  `json:"balance_training"`
	Notes           []string `json:"notes,omitempty"` // of the source
	// CutSeconds is the time the partitioner took, including its reads; WallSeconds is
	// the total time.
	CutSeconds  float64 `json:"cut_seconds"`
	WallSeconds float64 `json:"wall_seconds"`
}

// SplitInfo holds the vertex counts of one split.
type SplitInfo struct {
	Train uint64 `json:"train"`
	Val   uint64 `json:"val"`
	Test  uint64 `json:"test"`
}

// ShardInfo describes one shard. Its vertices follow those of the previous shard.
type ShardInfo struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Training uint64 `json:"training"`
	Halo     uint64 `json:"halo"` // distinct sources outside the shard
	Cut      uint64 `json:"cut"`  // edges from outside the shard
	Bytes    uint64 `json:"bytes"`
	SHA256   string `json:"sha256"` // hex, of the file
}

// ShardFile returns the name of a shard's file.
func ShardFile(shard int) string { return fmt.Sprintf("%04d.safetensors", shard) }

// Forecast predicts what an import will need and produce.
type Forecast struct {
	Vertices    uint64 `json:"vertices"`
	Edges       uint64 `json:"edges"` // at most
	Partitioner string `json:"partitioner"`
	Shards      int    `json:"shards"`
	ShardBytes  uint64 `json:"shard_bytes"` // of an average shard, at most
	PeakMemory  uint64 `json:"peak_memory"`
	Scratch     uint64 `json:"scratch"` // temporary bytes on disk beside the shards
	// CutAtMost is the share of edges that a random cut would cut.
	CutAtMost float64 `json:"cut_at_most"`
}
