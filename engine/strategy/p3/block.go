package p3

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A node's message on its first blocks has two parts. The head has a fixed size: the
// number of groups and the number of bytes of the other part. That has for each group
// its grain, the numbers of targets, sources and entries of its block and whether these
// have values, four bytes each; then the sources' vertices, the number of entries of
// each target, the entries' sources and the values, four bytes each, too.
const (
	headSize  = 12
	groupSize = 20
)

// mostBlock bounds the bytes of a node's blocks.
const mostBlock = 1 << 30

// blockBytes returns a group's size in the message.
func blockBytes(b *sample.Block) int {
	n := groupSize + 4*(len(b.Vertices)+b.Rows+b.Entries())
	if b.Values != nil {
		n += 4 * b.Entries()
	}
	return n
}

// appendBlock appends a group to the message.
func appendBlock(to []byte, grain int, b *sample.Block) []byte {
	entries, valued := b.Entries(), uint32(0)
	if b.Values != nil {
		valued = 1
	}
	for _, n := range [...]uint32{uint32(int32(grain)), uint32(b.Rows), uint32(len(b.Vertices)), uint32(entries), valued} {
		to = binary.LittleEndian.AppendUint32(to, n)
	}
	to = append(to, plain.Bytes(b.Vertices)...)
	for row := range b.Rows {
		to = binary.LittleEndian.AppendUint32(to, uint32(b.Indptr[row+1]-b.Indptr[row]))
	}
	first := int(b.Indptr[0])
	to = append(to, plain.Bytes(b.Indices[first:][:entries])...)
	if valued == 1 {
		to = append(to, plain.Bytes(b.Values[first:][:entries])...)
	}
	return to
}

// A bound limits the blocks of a job.
type bound struct {
	vertices uint32
	edges    bool // models without hops have none, and each source is a target
	groups   int
	stored   uint64 // edges of the graph
	fanouts  []int  // as in a recipe; none: all neighbours at every hop
	hops     int
}

// A limit is what the block of another node's group may have at most. All nodes know each group's
// roots, and how many neighbours a vertex may have.
type limit struct {
	grain                     int
	targets, sources, entries uint64
}

// limit returns the limit of a group with so many roots.
func (o bound) limit(grain, roots int) limit {
	l, all := limit{grain: grain, targets: uint64(roots), sources: uint64(roots)}, uint64(o.vertices)
	for hop := range o.hops {
		l.targets = l.sources
		l.entries = o.stored + all // each vertex may be its own neighbour
		if hop < len(o.fanouts) && o.fanouts[hop] > 0 {
			l.entries = min(l.entries, l.targets*(uint64(o.fanouts[hop])+1))
		}
		l.sources = min(all, l.targets+l.entries)
	}
	return l
}

// bytes returns the most bytes that a group has in a message.
func (l *limit) bytes() uint64 { return groupSize + 4*(l.sources+l.targets+2*l.entries) }

// check returns an error if a block has more.
func (l *limit) check(b *sample.Block) error {
	if rows, cols, entries := uint64(b.Rows), uint64(b.Cols), uint64(b.Entries()); rows > l.targets || cols > l.sources || entries > l.entries {
		return fmt.Errorf("it has a block of %d targets, %d sources and %d edges, and at most %d, %d and %d come of its roots", rows, cols, entries, l.targets, l.sources, l.entries)
	}
	return nil
}

// readHead parses and checks the first part.
func (o bound) readHead(b []byte) (groups, bytes int, err error) {
	groups = int(binary.LittleEndian.Uint32(b))
	size := binary.LittleEndian.Uint64(b[4:])
	if groups > o.groups || size > mostBlock || (size == 0) != (groups == 0) {
		return 0, 0, fmt.Errorf("it tells of %d groups in %d bytes, and at most %d in %d may be", groups, size, o.groups, mostBlock)
	}
	return groups, int(size), nil
}

// errBlock reports a wrong size of the other part.
var errBlock = errors.New("its blocks do not have the size that they say")

// A received block is of another node. Its memory is reused.
type received struct {
	sample.Block
	indptr []int64
}

// read parses the block from the rest of a message, checks all of it and returns what
// follows. b begins at a multiple of four, and must not change while the block is used.
func (r *received) read(b []byte, o bound) (grain int, rest []byte, err error) {
	if len(b) < groupSize {
		return 0, nil, errBlock
	}
	at := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[4*i:])) }
	grain = int(int32(binary.LittleEndian.Uint32(b)))
	rows, cols, entries, valued := at(1), at(2), at(3), at(4)
	if rows > cols || !o.edges && (rows != cols || entries > 0) || cols > uint64(o.vertices) || valued > 1 {
		return 0, nil, fmt.Errorf("it has a block of %d targets, %d sources and %d edges", rows, cols, entries)
	}
	b = b[groupSize:]
	if 4*(cols+rows+entries*(1+valued)) > uint64(len(b)) {
		return 0, nil, errBlock
	}
	part := func(n uint64) (p []byte) {
		p, b = b[:4*n], b[4*n:]
		return p
	}
	r.Rows, r.Cols, r.Own, r.Values = int(rows), int(cols), 0, nil
	r.Vertices = plain.Numbers[uint32](part(cols))
	counts := plain.Numbers[uint32](part(rows))
	r.Indices = plain.Numbers[int32](part(entries))
	if valued == 1 {
		r.Values = plain.Numbers[float32](part(entries))
	}
	for _, v := range r.Vertices {
		if v >= o.vertices {
			return 0, nil, fmt.Errorf("it has vertex %d of a graph of %d", v, o.vertices)
		}
	}
	for _, source := range r.Indices {
		if source < 0 || uint64(source) >= cols {
			return 0, nil, fmt.Errorf("it has an edge from source %d of %d", source, cols)
		}
	}
	r.indptr = append(r.indptr[:0], 0)
	sum := uint64(0)
	for _, n := range counts {
		sum += uint64(n)
		r.indptr = append(r.indptr, int64(sum))
	}
	if sum != entries {
		return 0, nil, fmt.Errorf("its targets have %d edges, and its block has %d", sum, entries)
	}
	r.Indptr, r.Transposed = r.indptr, nil
	return grain, b, nil
}
