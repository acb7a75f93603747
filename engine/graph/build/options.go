package build

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Options configures how a graph is cut and where the shards go.
type Options struct {
	Dir         string // created by Run, must not exist; removed on an error
	Scratch     string // folder for temporary files; "": Dir
	Shards      int    // 0: chosen by the number of vertices
	Partitioner string // auto (or ""), multilevel, stream or random
	DType       graph.DType
	Memory      uint64 // bound on the process's resident bytes; 0: none
	Undirected  bool   // mirror every edge
	Seed        uint64
	Nodes       int // that share the disk space; 0: one
	// Report, if not nil, is called at most about ten times a second, from one goroutine
	// at a time.
	Report func(graph.Progress)
}

// The partitioners.
const (
	auto       = "auto"
	multilevel = "multilevel"
	stream     = "stream"
	random     = "random"

	elsewhere = "elsewhere" // of a maker: another node cuts the graph
)

// defaultShards returns 64, or fewer for a small graph so that each shard has at least
// 128 vertices.
func defaultShards(vertices uint32) int {
	n := 1
	for n < 64 && uint32(n)*2*128 <= vertices {
		n *= 2
	}
	return n
}

// settle checks the options against the source and fills in the defaults.
func (o Options) settle(src graph.Source) (Options, error) {
	meta := src.Meta()
	if o.Partitioner == "" {
		o.Partitioner = auto
	}
	if o.DType == "" {
		o.DType = graph.F32
	}
	if known := []string{auto, multilevel, stream, random}; !slices.Contains(known, o.Partitioner) {
		return o, fmt.Errorf("there is no partitioner %q: choose one of %s", o.Partitioner, strings.Join(known, ", "))
	}
	if o.DType != graph.F32 && o.DType != graph.BF16 {
		return o, fmt.Errorf("features cannot be stored as %q: choose %s or %s", o.DType, graph.F32, graph.BF16)
	}
	if meta.Vertices == 0 {
		return o, errors.New("the graph has no vertices")
	}
	if meta.Vertices > graph.MaxVertices {
		return o, fmt.Errorf("the graph has %d vertices, and %d are the most", meta.Vertices, graph.MaxVertices)
	}
	if o.Shards == 0 {
		o.Shards = defaultShards(meta.Vertices)
	}
	switch {
	case o.Shards < 0 || o.Shards > graph.MaxShards:
		return o, fmt.Errorf("a graph is cut into 1 to %d shards, and not into %d", graph.MaxShards, o.Shards)
	case uint32(o.Shards) > meta.Vertices:
		return o, fmt.Errorf("%d vertices cannot be cut into %d shards: choose fewer", meta.Vertices, o.Shards)
	}
	if o.Scratch == "" {
		o.Scratch = o.Dir
	}
	return o, graph.CheckSource(src)
}

// workers returns the number of goroutines that share the work; each costs memory.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }
