package build

import (
	"context"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/build/loads"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// blocks holds the undirected graph that partitioners read, on disk, in runs of
// consecutive source vertices, without self-loops or duplicate edges.
type blocks struct {
	runs      []run
	halfEdges uint64
	vertices  uint32
	loads     loads.Loads
	training  func(vertex uint32) bool
}

// A run is one block's place on disk: each vertex's degree and number of stored edges,
// then the neighbours, all as 32-bit numbers.
type run struct {
	from            bytesAt
	first, vertices uint32
	edges           int
	at              int64
}

// bytesAt is where a run is: a spool here or on another node.
type bytesAt interface {
	read(b []byte, at int64) error
}

// sortHalves sorts the halves of each bucket, on several goroutines.
func (b *builder) sortHalves(ctx context.Context, h *halves, to *spool) (*blocks, error) {
	out := &blocks{
		vertices: h.vertices,
		loads:    b.plan.loads, training: b.trains,
	}
	runs := make([][]run, h.count())
	b.report.begin("sorting edges", uint64(h.vertices), "vertices")
	err := parallel(ctx, b.plan.workers, h.count(), func(ctx context.Context, next func() (int, bool)) error {
		s := newSorter(min(b.plan.records, h.largest()), b.plan.most, h.low, false)
		for bucket, ok := next(); ok; bucket, ok = next() {
			if h.mine != nil && !h.mine(bucket) {
				continue
			}
			first, end := h.span(bucket)
			err := s.rows(ctx, h.records, bucket, 0, end-first, func(p sorted) error {
				r, err := compact(p, h.low, first, to)
				runs[bucket] = append(runs[bucket], r)
				b.report.add(uint64(r.vertices))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, of := range runs {
		for _, r := range of {
			out.runs = append(out.runs, r)
			out.halfEdges += uint64(r.edges)
		}
	}
	return out, err
}

// compact writes one run. The vertices of its bucket start at base.
func compact(p sorted, low uint, base uint32, to *spool) (run, error) {
	n := p.end - p.first
	r := run{from: to, first: base + p.first, vertices: n}
	head := make([]uint32, 2*n)
	degree, stored := head[:n], head[n:]
	edges := shrink(p.spare)[:0]
	mask := uint64(1)<<low - 1
	last := ^uint64(0)
	for _, k := range p.keys {
		if k == last {
			continue
		}
		row := uint32(k>>low) - p.first
		stored[row] += uint32(k & 1)
		neighbour := uint32(k & mask >> 1)
		if neighbour != r.first+row && k>>1 != last>>1 {
			degree[row]++
			edges = append(edges, neighbour)
		}
		last = k
	}
	r.edges = len(edges)
	at, err := to.append(raw(head), raw(edges))
	r.at = at
	return r, err
}

// Vertices returns the number of vertices.
func (b *blocks) Vertices() uint32 { return b.vertices }

// HalfEdges returns the number of edges, each counted at both ends.
func (b *blocks) HalfEdges() uint64 { return b.halfEdges }

// Constraints returns the number of weights per vertex.
func (b *blocks) Constraints() int { return b.loads.Constraints() }

// A block's size depends on the graph alone, not on the memory its runs were sorted in,
// because partitioners may depend on where blocks begin and end.
const (
	blockRows  = 1 << 13
	blockEdges = 1 << 21 // unless a single vertex has more
	readAhead  = 2       // blocks in memory
)

// blockBytes returns a block's size in memory. Slices grow by a quarter, and no vertex has
// more neighbours than there are vertices.
func blockBytes(vertices, halves uint64, constraints int) uint64 {
	edges := min(max(blockEdges*5/4, min(2*blockEdges, vertices)), halves)
	return 4*edges + blockRows*uint64(16+4*constraints)
}

// Blocks yields the graph in vertex order, and reads the next block while yield works on
// the current one. A block is valid until yield returns.
func (b *blocks) Blocks(ctx context.Context, yield func(partition.Block) error) error {
	ctx, stop := context.WithCancel(ctx)
	full := make(chan *partition.Block)
	free := make(chan *partition.Block, readAhead)
	for range cap(free) {
		free <- &partition.Block{}
	}
	var failed error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(full)
		failed = b.read(ctx, free, full)
	})
	defer reader.Wait()
	defer stop()
	for block := range full {
		if err := yield(*block); err != nil {
			return err
		}
		free <- block // never blocks: free has room for all
	}
	return failed
}

// read fills blocks with the rows of consecutive runs.
func (b *blocks) read(ctx context.Context, free, full chan *partition.Block) error {
	var block *partition.Block
	var head []uint32
	for _, r := range b.runs {
		n := int(r.vertices)
		head = sized(head, 2*n)
		if err := r.from.read(raw(head), r.at); err != nil {
			return err
		}
		degrees, stored := head[:n], head[n:]
		sum := 0
		for _, d := range degrees {
			sum += int(d)
		}
		if sum != r.edges || slices.Max(degrees) > b.vertices {
			return errMessage
		}
		at := r.at + int64(len(head))*4
		for row := 0; row < n; {
			if block == nil {
				select {
				case block = <-free:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				block.First = r.first + uint32(row)
				block.Indptr = append(block.Indptr[:0], 0)
				block.Indices = block.Indices[:0]
				block.Weights = block.Weights[:0]
			}
			end, complete := fit(block, degrees, row)
			held := len(block.Indices)
			block.Indices = longer(block.Indices, int(block.Indptr[len(block.Indptr)-1]))
			if err := r.from.read(raw(block.Indices[held:]), at); err != nil {
				return err
			}
			at += int64(len(block.Indices)-held) * 4
			weights := len(block.Weights)
			block.Weights = longer(block.Weights, weights+(end-row)*b.loads.Constraints())
			b.weigh(r.first+uint32(row), stored[row:end], block.Weights[weights:])
			row = end
			if !complete && r.first+uint32(row) < b.vertices {
				continue
			}
			select {
			case full <- block:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			block = nil
		}
	}
	return nil
}

// fit adds to a block the degrees of as many rows as fit. It returns the row after the
// last one and whether the block is complete.
func fit(block *partition.Block, degrees []uint32, row int) (int, bool) {
	at := block.Indptr[len(block.Indptr)-1]
	for ; row < len(degrees); row++ {
		rows := len(block.Indptr) - 1
		next := at + int64(degrees[row])
		if rows == blockRows || rows > 0 && next > blockEdges {
			return row, true
		}
		block.Indptr = append(block.Indptr, next)
		at = next
	}
	return row, false
}

// weigh fills in the weights of some vertices.
func (b *blocks) weigh(first uint32, stored, weights []uint32) {
	of := b.loads.Constraints()
	for row, edges := range stored {
		b.loads.Weigh(weights[row*of:][:of], first+uint32(row), edges, b.training)
	}
}

// whole reads the graph into memory.
func (b *blocks) whole(ctx context.Context) (*partition.Graph, error) {
	g := &partition.Graph{
		Indptr:      make([]int64, int(b.vertices)+1),
		Indices:     make([]uint32, b.halfEdges),
		Constraints: b.loads.Constraints(),
		Weights:     make([]uint32, int(b.vertices)*b.loads.Constraints()),
	}
	var head []uint32
	at := int64(0)
	for _, r := range b.runs {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		n := int(r.vertices)
		head = sized(head, 2*n)
		if err := r.from.read(raw(head), r.at); err != nil {
			return nil, err
		}
		if err := r.from.read(raw(g.Indices[at:at+int64(r.edges)]), r.at+int64(len(head))*4); err != nil {
			return nil, err
		}
		start := at
		for row, degree := range head[:n] {
			at += int64(degree)
			g.Indptr[int(r.first)+row+1] = at
		}
		if at != start+int64(r.edges) || slices.ContainsFunc(g.Indices[start:at], func(v uint32) bool { return v >= b.vertices }) {
			return nil, errMessage
		}
		b.weigh(r.first, head[n:], g.Weights[int(r.first)*b.loads.Constraints():])
	}
	return g, nil
}

// sized returns a slice of n elements, reusing the given one if it has room.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// longer returns a slice of n elements that begins with the elements of s.
func longer[T any](s []T, n int) []T { return slices.Grow(s, n-len(s))[:n] }
