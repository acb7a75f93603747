package partition

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// A Stream is a graph too large to hold in memory. It is undirected: each edge is stored
// at both ends, and there are no self-loops.
type Stream interface {
	Vertices() uint32
	// HalfEdges is the total number of neighbours of all vertices.
	HalfEdges() uint64
	// Constraints is the number of weights per vertex.
	Constraints() int
	// Blocks yields all vertices in ascending order. It is called once per pass, and a
	// block is valid until yield returns. It stops at yield's first error and returns it.
	Blocks(ctx context.Context, yield func(Block) error) error
}

// A Block is a run of consecutive vertices: the neighbours of First+i are
// Indices[Indptr[i]:Indptr[i+1]], Indptr starts at 0, and Weights holds the vertices'
// weights one vertex after another.
type Block struct {
	First   uint32
	Indptr  []int64
	Indices []uint32
	Weights []uint32
}

// A label that is no part.
const streamNone = math.MaxUint16 // none yet

// Passes over the graph. Those of a kind end early once hardly any vertex moves.
const (
	streamClusterPasses = 4 // at most
	streamRefinePasses  = 5 // at most
	streamRepairPasses  = 16
	streamSettled       = 100 // settled if fewer than one vertex in so many moved
)

// Streaming cuts a graph read in passes, with eight bytes of memory per vertex and a share
// of what the edges take. The first passes grow clusters: each vertex joins the cluster of
// most of its neighbours, while it has room. One pass adds up the edges between clusters,
// and Multilevel cuts the graph of clusters. Further passes let single vertices follow
// their neighbours as far as balance allows. No part is heavier than Tolerance allows if
// single moves can achieve that; if a single vertex weighs more, so may parts. The result
// depends on the graph and the seed, not on Threads.
func Streaming(ctx context.Context, g Stream, o Options) ([]uint16, error) {
	s, err := newStreamer(ctx, g, o)
	if err != nil {
		return nil, err
	}
	if o.Parts == 1 || s.n == 0 {
		return s.label, nil // all zero
	}
	if err := s.pack(); err != nil {
		return nil, err
	}
	if err := s.refine(); err != nil {
		return nil, err
	}
	number := Order(s.k, s.between, o.Seed)
	for v, p := range s.label {
		s.label[v] = number[p]
	}
	if o.Report != nil {
		o.Report(1)
	}
	return s.label, nil
}

// StreamingMemory returns a bound on the memory of Streaming in bytes, without the
// caller's blocks.
func StreamingMemory(vertices uint32, halfEdges uint64, parts, constraints int) uint64 {
	n, k, c := uint64(vertices), uint64(parts), uint64(constraints)
	slots, clusters := streamPairSlots(halfEdges), uint64(streamClusterLimit(vertices, halfEdges, parts))
	edges := min(2*uint64(slots), halfEdges)
	tally := uint64(8<<tallySize(streamSample) + 2*8*streamSample)
	workers := streamThreads*(uint64(unsafe.Sizeof(streamWorker{}))+tally) + streamSubBlock*(streamChoiceBytes+4*c+8)
	grow := 8 * n
	contract := 4*n + uint64(slots)*streamPairBytes + 8*edges + clusters*(8+4*c)
	cut := 4*n + uint64(slots)*streamPairBytes + 4*edges + MultilevelMemory(uint32(clusters), edges, constraints)
	refine := 6*n + clusters*2
	return max(grow, contract, cut, refine) + workers + 2*8*k*k + k*(8*c+64)
}

type streamer struct {
	ctx     context.Context
	g       Stream
	o       Options
	n       uint32
	k, c    int
	label   []uint16 // by vertex: its part
	loads   []uint64 // by part and constraint
	limit   []uint64 // by constraint: limit of a part
	total   []uint64
	largest []uint64 // by constraint: heaviest vertex
	between []uint64 // k x k: edges between parts

	workers []*streamWorker
	choices []streamChoice // of the sub-block, with weights and degrees
	weights []uint32
	degrees []int
	moved   uint32 // vertices that changed their label in this pass
	done    uint64 // vertices, of all passes
}

func newStreamer(ctx context.Context, g Stream, o Options) (*streamer, error) {
	s := &streamer{ctx: ctx, g: g, o: o, n: g.Vertices(), k: o.Parts, c: g.Constraints()}
	if s.c < 1 {
		return nil, fmt.Errorf("%w: %d constraints, it must be at least 1", ErrGraph, s.c)
	}
	if err := o.check(s.c); err != nil {
		return nil, err
	}
	if s.n > 0 && uint64(s.k) > uint64(s.n) {
		return nil, fmt.Errorf("%w: %d vertices can't be cut into %d parts, choose at most as many parts as there are vertices", ErrOptions, s.n, s.k)
	}
	threads := o.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if s.k == 1 || s.n == 0 {
		s.label = make([]uint16, s.n)
		return s, nil
	}
	s.limit, s.total, s.largest = make([]uint64, s.c), make([]uint64, s.c), make([]uint64, s.c)
	s.loads = make([]uint64, s.k*s.c)
	s.between = make([]uint64, s.k*s.k)
	for range min(threads, streamThreads) {
		s.workers = append(s.workers, &streamWorker{tally: newTally(min(int(s.n), streamSample))})
	}
	s.choices, s.weights, s.degrees = make([]streamChoice, streamSubBlock), make([]uint32, streamSubBlock*s.c), make([]int, streamSubBlock)
	return s, nil
}

// setLimits sets the limits of a part once the totals are known. No limit is below what
// the heaviest vertex or an even share requires.
func (s *streamer) setLimits() {
	for c, total := range s.total {
		even := (total + uint64(s.k) - 1) / uint64(s.k)
		s.limit[c] = max(even, s.largest[c], uint64(float64(total)/float64(s.k)*s.o.Tolerance[c]))
	}
}

// report reports progress, assuming that no repair is needed.
func (s *streamer) report(vertices int) {
	s.done += uint64(vertices)
	if s.o.Report != nil {
		passes := uint64(streamClusterPasses + 1 + streamRefinePasses)
		s.o.Report(min(1, float64(s.done)/float64(passes*uint64(s.n))))
	}
}
