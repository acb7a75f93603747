package graph

import "fmt"

// DType is how features are stored.
type DType string

// The types that features are stored as.
const (
	F32  DType = "f32"
	BF16 DType = "bf16"
)

// MaxShards bounds how many shards a graph is cut into, MaxSplits how many splits
// it has.
const (
	MaxShards = 1024
	MaxSplits = 1024
)

// Manifest describes a dataset that was cut into shards.
type Manifest struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"` // stored ones: mirrored if asked for, then merged
	Weighted bool   `json:"weighted,omitempty"`
	Features int    `json:"features"`
	Sparse   bool   `json:"sparse,omitempty"` // features are stored as sparse rows
	Classes  int    `json:"classes"`
	// Splits counts the vertices of each split's parts.
	Splits      []SplitInfo `json:"splits"`
	DType       DType       `json:"dtype"`
	Partitioner string      `json:"partitioner"` // multilevel, stream or random
	Seed        uint64      `json:"seed"`
	Shards      []ShardInfo `json:"shards"`
	// EdgeCut counts the edges between shards.
	EdgeCut uint64 `json:"edge_cut"`
	// Balance is the largest shard over the average one, by vertices, by edges and
	// by training vertices; 1 where there are none.
	Balance         float64  `json:"balance"`
	BalanceEdges    float64  `json:"balance_edges"`
	BalanceTraining float64  `json:"balance_training"`
	Notes           []string `json:"notes,omitempty"` // of the source
	// CutSeconds is how long the partitioner took, with what it reads; WallSeconds,
	// the whole.
	CutSeconds  float64 `json:"cut_seconds"`
	WallSeconds float64 `json:"wall_seconds"`
}

// SplitInfo counts one split.
type SplitInfo struct {
	Train uint64 `json:"train"`
	Val   uint64 `json:"val"`
	Test  uint64 `json:"test"`
}

// ShardInfo describes one shard. Its vertices follow those of the shard before.
type ShardInfo struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Training uint64 `json:"training"`
	Halo     uint64 `json:"halo"` // distinct sources outside of it
	Cut      uint64 `json:"cut"`  // edges from outside of it
	Bytes    uint64 `json:"bytes"`
	SHA256   string `json:"sha256"` // hex, of the file
}

// ShardFile is the name of a shard's file.
func ShardFile(shard int) string { return fmt.Sprintf("%04d.safetensors", shard) }

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
}
