package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Limits of datasets. The plan goes to every node with every snapshot, so it stays
// small.
const (
	// MaxShards bounds the shards of one dataset, MaxReplicas the copies of a shard
	// besides its owner's.
	MaxShards   = 1024
	MaxReplicas = 15
	// MaxDatasets bounds the number of datasets, MaxRows the shards and splits of all
	// datasets together.
	MaxDatasets = 256
	MaxRows     = 16 << 10
	// MaxClassNames bounds the bytes of a dataset's class names.
	MaxClassNames = 16 << 10
	// MaxTypes bounds the bytes of a dataset's types.
	MaxTypes = 160 << 10
)

// Stage is a dataset's progress. It never goes back.
type Stage string

// A dataset's stages, in order.
const (
	Importing Stage = "importing" // its name is reserved, its importer makes the shards
	Placing   Stage = "placing"   // its shards are known and on their way to their nodes
	Ready     Stage = "ready"     // every shard is, or once was, where it is wanted
)

// Dataset describes a graph cut into shards, and where the shards are. Whatever a
// State's datasets refer to is as immutable as the State.
type Dataset struct {
	ID       string `json:"id"`   // 16 hex digits, made by the importer
	Name     string `json:"name"` // unique among datasets
	Stage    Stage  `json:"stage"`
	Importer string `json:"importer"` // a member as long as it imports
	Replicas int    `json:"replicas"` // copies wanted besides the owner's
	About    About  `json:"about"`
	// Nodes are the ids that Shards refer to by index. They are sorted, and each is
	// used.
	Nodes  []string `json:"nodes,omitempty"`
	Shards []Shard  `json:"shards,omitempty"`
}

// About describes the graph.
type About struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`           // or columns of other targets
	Targets  string `json:"targets,omitempty"` // empty: one class each
	// Types describes the types of vertices and the relations of edges, in the engine's JSON; empty:
	// there is one of each.
	Types string `json:"types,omitempty"`
	// Triples means that edges are triples with a given split, as Types says.
	Triples  bool `json:"triples,omitempty"`
	Weighted bool `json:"weighted,omitempty"`
	// EdgeFeatures is how many features edges have.
	EdgeFeatures int    `json:"edge_features,omitempty"`
	Sparse       bool   `json:"sparse,omitempty"`
	DType        string `json:"dtype"`
	Partitioner  string `json:"partitioner"`
	Seed         uint64 `json:"seed"`
	EdgeCut      uint64 `json:"edge_cut"`
	// Balance is the ratio of the largest shard to the average, by vertices, by edges
	// and by training vertices.
	Balance         float64      `json:"balance"`
	BalanceEdges    float64      `json:"balance_edges"`
	BalanceTraining float64      `json:"balance_training"`
	Splits          []SplitSizes `json:"splits,omitempty"`
	// ClassNames has a name for each class; empty: they have none.
	ClassNames []string `json:"class_names,omitempty"`
}

// SplitSizes counts the vertices of one split.
type SplitSizes struct {
	Train uint64 `json:"train"`
	Val   uint64 `json:"val"`
	Test  uint64 `json:"test"`
}

// ShardAbout describes a shard's contents. Its vertex numbers follow those of the
// previous shard.
type ShardAbout struct {
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Halo     uint64 `json:"halo"`
	Bytes    uint64 `json:"bytes"`
	SHA256   string `json:"sha256"` // hex, of its file
}

// Shard is one part of a dataset and where it is.
type Shard struct {
	ShardAbout
	// Holders have reported that they hold the shard, whole and verified. The first of
	// them is its owner.
	Holders []int `json:"holders,omitempty"`
	// Wanted are the nodes that must hold the shard, the owner first. It is empty if it
	// would equal Holders.
	Wanted []int `json:"wanted,omitempty"`
}

// DatasetByName returns the dataset with this name.
func (s *State) DatasetByName(name string) (Dataset, bool) {
	for _, d := range s.Datasets {
		if d.Name == name {
			return d, true
		}
	}
	return Dataset{}, false
}

// Content identifies a dataset's content: a digest of its shards' digests.
func (d Dataset) Content() string {
	sum := sha256.New()
	for _, s := range d.Shards {
		sum.Write([]byte(s.SHA256))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ShardsOwned counts the shards of all datasets that this node owns.
func (s *State) ShardsOwned(node string) int {
	n := 0
	for _, d := range s.Datasets {
		for i := range d.Shards {
			if d.Owner(i) == node {
				n++
			}
		}
	}
	return n
}

// Owner returns the node that owns the shard, or "" if nobody holds it.
func (d Dataset) Owner(shard int) string {
	if h := d.Shards[shard].Holders; len(h) > 0 {
		return d.Nodes[h[0]]
	}
	return ""
}

// HoldersOf lists the nodes that have proven to hold the shard, its owner first. The
// caller owns the slice.
func (d Dataset) HoldersOf(shard int) []string { return d.named(d.Shards[shard].Holders) }

// WantedOf lists the nodes that must hold the shard, its future owner first. The caller
// owns the slice.
func (d Dataset) WantedOf(shard int) []string { return d.named(d.wanted(shard)) }

// Holds reports whether the node has proven to hold the shard.
func (d Dataset) Holds(node string, shard int) bool { return d.has(node, d.Shards[shard].Holders) }

// Wants reports whether the node must hold the shard.
func (d Dataset) Wants(node string, shard int) bool { return d.has(node, d.wanted(shard)) }

// Lost reports whether nobody holds the shard. Any member that still has its file may
// then claim the shard and is believed, so nobody should remove that file.
func (d Dataset) Lost(shard int) bool { return len(d.Shards[shard].Holders) == 0 }

// Settled reports whether the shard is where it is wanted, and nowhere else.
func (d Dataset) Settled(shard int) bool { return len(d.Shards[shard].Wanted) == 0 }

func (d Dataset) wanted(shard int) []int {
	if w := d.Shards[shard].Wanted; len(w) > 0 {
		return w
	}
	return d.Shards[shard].Holders
}

func (d Dataset) named(list []int) []string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = d.Nodes[n]
	}
	return names
}

func (d Dataset) has(node string, list []int) bool {
	at, ok := slices.BinarySearch(d.Nodes, node)
	return ok && slices.Contains(list, at)
}

// Lacks counts the shards of a dataset that are short of holders. No shard is counted
// twice.
type Lacks struct {
	Unserved int // shards that no serving node holds: they can't be used
	Waiting  int // shards whose owner doesn't serve, but another holder does and can take over
	Thin     int // shards whose owner serves, held by fewer serving nodes than wanted
}

// Lacks counts the shards that have no serving owner or fewer than Replicas serving
// copies besides it. A mesh with too few members for the copies counts as lacking.
func (d Dataset) Lacks(serving func(id string) bool) Lacks {
	var l Lacks
	up := make([]bool, len(d.Nodes))
	for i, id := range d.Nodes {
		up[i] = serving(id)
	}
	for _, s := range d.Shards {
		live := 0
		for _, h := range s.Holders {
			if up[h] {
				live++
			}
		}
		switch {
		case live == 0:
			l.Unserved++
		case !up[s.Holders[0]]:
			l.Waiting++
		case live <= d.Replicas:
			l.Thin++
		}
	}
	return l
}
