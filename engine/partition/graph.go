package partition

import (
	"errors"
	"fmt"
	"math"
)

// MaxParts is the maximum number of parts.
const MaxParts = 1024

var (
	// ErrGraph is returned if a graph's slices do not fit together.
	ErrGraph = errors.New("the graph is malformed")
	// ErrOptions is returned if the options are invalid for any graph.
	ErrOptions = errors.New("the options of the partitioner are wrong")
)

// Graph is undirected: each edge is stored at both ends with the same weight, and there
// are no self-loops. The caller owns the slices; this package does not write to them.
type Graph struct {
	Indptr      []int64  // one more than vertices; the edges of v are Indptr[v] to Indptr[v+1]
	Indices     []uint32 // the other end of each edge
	EdgeWeights []uint32 // parallel to Indices; nil if all are 1
	Constraints int      // weights per vertex, at least 1
	Weights     []uint32 // weight c of v at v*Constraints+c
}

// Options configures how a graph is cut.
type Options struct {
	Parts     int
	Seed      uint64
	Tolerance []float64          // for each constraint: the heaviest part over the average, above 1
	Threads   int                // 0: GOMAXPROCS
	Report    func(done float64) // may be nil; receives the share of the work done, from one goroutine, never decreasing
}

// vertices returns the number of vertices.
func (g *Graph) vertices() int { return len(g.Indptr) - 1 }

// degree returns the number of edges at v.
func (g *Graph) degree(v uint32) int64 { return g.Indptr[v+1] - g.Indptr[v] }

// weightOf returns the weight of the edge at position e.
func (g *Graph) weightOf(e int64) uint32 {
	if g.EdgeWeights == nil {
		return 1
	}
	return g.EdgeWeights[e]
}

// totals returns the sum of the vertex weights by constraint.
func (g *Graph) totals() []int64 {
	sum := make([]int64, g.Constraints)
	for v := range g.vertices() {
		for c := range sum {
			sum[c] += int64(g.Weights[v*g.Constraints+c])
		}
	}
	return sum
}

// check returns an error if the graph would make the partitioner read outside a slice. It
// does not check that each edge is stored at both ends: without that the result is valid,
// but poor.
func (g *Graph) check() error {
	if len(g.Indptr) == 0 || g.Indptr[0] != 0 {
		return fmt.Errorf("%w: Indptr must begin with 0", ErrGraph)
	}
	n := g.vertices()
	if n >= math.MaxUint32 {
		return fmt.Errorf("%w: %d vertices, at most %d are possible", ErrGraph, n, uint32(math.MaxUint32-1))
	}
	if g.Constraints < 1 {
		return fmt.Errorf("%w: Constraints is %d, it must be at least 1", ErrGraph, g.Constraints)
	}
	if len(g.Weights) != n*g.Constraints {
		return fmt.Errorf("%w: %d weights for %d vertices with %d constraints", ErrGraph, len(g.Weights), n, g.Constraints)
	}
	if g.EdgeWeights != nil && len(g.EdgeWeights) != len(g.Indices) {
		return fmt.Errorf("%w: %d edge weights for %d edges", ErrGraph, len(g.EdgeWeights), len(g.Indices))
	}
	if g.Indptr[n] != int64(len(g.Indices)) {
		return fmt.Errorf("%w: Indptr ends with %d, but there are %d edges", ErrGraph, g.Indptr[n], len(g.Indices))
	}
	for v := range n {
		if g.Indptr[v] > g.Indptr[v+1] {
			return fmt.Errorf("%w: Indptr falls after vertex %d", ErrGraph, v)
		}
	}
	for v := range n {
		for _, u := range g.Indices[g.Indptr[v]:g.Indptr[v+1]] {
			if int(u) >= n || int(u) == v {
				return fmt.Errorf("%w: vertex %d has an edge to %d, of %d vertices", ErrGraph, v, u, n)
			}
		}
	}
	return nil
}

// check returns an error if the options are invalid for a graph with that many
// constraints.
func (o Options) check(constraints int) error {
	if o.Parts < 1 || o.Parts > MaxParts {
		return fmt.Errorf("%w: %d parts, it must be 1 to %d", ErrOptions, o.Parts, MaxParts)
	}
	if len(o.Tolerance) != constraints {
		return fmt.Errorf("%w: %d tolerances for %d constraints", ErrOptions, len(o.Tolerance), constraints)
	}
	for c, t := range o.Tolerance {
		if !(t >= 1) || math.IsInf(t, 0) {
			return fmt.Errorf("%w: tolerance %d is %g, it must be at least 1", ErrOptions, c, t)
		}
	}
	if o.Threads < 0 {
		return fmt.Errorf("%w: %d threads", ErrOptions, o.Threads)
	}
	return nil
}
