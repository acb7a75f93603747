//go:build cuda

package sample

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Options configures a sampler.
type Options struct {
	sample.Options // without Far
	// Fused samples the outermost hop only while its rows are summed up (Mean), so that
	// batches have no block of it.
	Fused bool
}

// hops returns the number of hops with blocks.
func (o *Options) hops() int {
	if o.Fused {
		return len(o.Fanouts) - 1
	}
	return len(o.Fanouts)
}

// Sampler samples neighbours on a GPU. Its memory is on the device, and one thread of the
// device uses it.
type Sampler struct {
	o      Options
	graph  resident
	stream driver.Stream
	tape   *driver.Tape
	programs

	// The capacity for seed vertices, and for the entries of each hop from the seed
	// vertices outwards.
	roots   int
	entries []int

	// Temporary memory of each batch: the table of numbers, the entries' ranks, the sums
	// of tiles, partially sorted entries, and digit counts.
	table, ranks, partial, order, digits driver.Memory
}

var (
	errTooMany = errors.New("a block of more edges than a GPU numbers: use fewer roots or smaller fan-outs")
	errFanout  = errors.New("fan-outs are from 0 to 2147483647")
	errFused   = fmt.Errorf("a hop without a block takes a fan-out of at most %d", sample.MostSummed)
)

// New copies a topology to the device and makes a sampler for it. The topology must be
// complete. The sampler does not keep it, or the options' Far.
func New(on *driver.Thread, t *sample.Topology, o Options) (*Sampler, error) {
	for _, k := range o.Fanouts {
		if k < 0 || k > math.MaxInt32 {
			return nil, fmt.Errorf("sample on the GPU: a fan-out of %d: %w", k, errFanout)
		}
	}
	if hops := len(o.Fanouts); o.Fused && (hops == 0 || o.Fanouts[hops-1] > sample.MostSummed) {
		return nil, fmt.Errorf("sample on the GPU: fan-outs %v: %w", o.Fanouts, errFused)
	}
	s := &Sampler{o: o, entries: make([]int, o.hops()), tape: driver.NewTape()}
	s.o.Fanouts = slices.Clone(o.Fanouts)
	err := s.programs.load(on)
	if err == nil {
		s.stream, err = on.NewStream()
	}
	if err == nil {
		err = s.graph.send(on, t, o.Form)
		if err != nil {
			err = errors.Join(err, on.CloseStream(s.stream))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sample on the GPU: %w", errors.Join(err, s.release(on)))
	}
	return s, nil
}

// Close frees what New and Sample allocated, except the batches' own memory.
func (s *Sampler) Close(on *driver.Thread) error {
	return errors.Join(on.Finish(s.stream), s.release(on), on.CloseStream(s.stream))
}

func (s *Sampler) release(on *driver.Thread) error {
	err := errors.Join(on.CloseTape(s.tape), free(on, s.graph.memories()...), free(on, &s.table, &s.ranks, &s.partial, &s.order, &s.digits))
	for _, m := range s.modules {
		err = errors.Join(err, on.Unload(m))
	}
	return err
}

func (s *Sampler) layout() layout { return layout{len(s.entries), len(s.o.Fanouts)} }

// Counts returns what the sampler has submitted to its GPU.
func (s *Sampler) Counts() driver.Counts { return s.tape.Counts() }

// Fused reports whether the outermost hop has no block.
func (s *Sampler) Fused() bool { return s.o.Fused }

// Stream returns the stream of the sampler's work. What Sample wrote is complete when it
// returns. Mean writes in this stream's order.
func (s *Sampler) Stream() driver.Stream { return s.stream }

// Sample samples the blocks of distinct seed vertices, as sample.Sampler does. Nobody may
// be using b's blocks.
func (s *Sampler) Sample(on *driver.Thread, b *Batch, epoch, step uint64, roots []uint32) error {
	b.Blocks = b.Blocks[:0]
	for _, v := range roots {
		if int(v) >= s.graph.vertices {
			return fmt.Errorf("sample: root %d is not a vertex of a graph of %d", v, s.graph.vertices)
		}
	}
	s.plan(max(1, len(roots)))
	for {
		if err := s.reserve(on, b); err != nil {
			return fmt.Errorf("sample on the GPU: %w", err)
		}
		s.layout().fill(b.pinned, keyed.New(s.o.Seed, keyed.Neighbor).With(epoch).With(step), roots)
		if err := s.batch(on, b); err != nil {
			return fmt.Errorf("sample on the GPU: %w", err)
		}
		said := counts(driver.Numbers[int64](b.pinned))
		if again := said.again(); again != math.MaxInt32 {
			return fmt.Errorf("sample: root %d occurs twice: the roots of a batch must be distinct", roots[again])
		}
		grown, err := s.grow(said)
		if err != nil {
			return fmt.Errorf("sample: from %d roots: %w", len(roots), err)
		}
		if !grown {
			s.blocks(b, said)
			return s.list(on, b)
		}
	}
}

// plan makes room for seed vertices. If there is no capacity for entries yet, it
// estimates one from the average vertex; the counts show later if that was too small.
func (s *Sampler) plan(roots int) {
	if roots <= s.roots {
		return
	}
	s.roots = padded(roots)
	mean := int(s.graph.edges/int64(max(1, s.graph.vertices))) + 1
	targets := s.roots
	for h := range s.entries {
		each, fanout := mean, s.o.Fanouts[h]
		if fanout > 0 {
			each = min(fanout, mean)
		}
		s.entries[h] = max(s.entries[h], s.padded(targets*(each+1)))
		targets = s.room(h + 1)
	}
}

// room returns the maximum number of vertices before this hop.
func (s *Sampler) room(hop int) int {
	n := s.roots
	for _, entries := range s.entries[:hop] {
		n += entries
	}
	return min(n, max(s.roots, s.graph.vertices))
}

// grow increases the capacity of a hop that did not fit. The counts of later hops are
// then too low.
func (s *Sampler) grow(said counts) (grown bool, err error) {
	for h := range s.entries {
		wanted := said.wanted(h)
		if wanted > int64(s.most()) {
			return false, fmt.Errorf("hop %d: %w", h, errTooMany)
		}
		if wanted > int64(s.entries[h]) {
			s.entries[h] = s.padded(int(wanted))
			return true, nil
		}
	}
	return false, nil
}

// most returns the maximum number of entries of a hop: with the targets, they have 32-bit
// numbers.
func (s *Sampler) most() int { return math.MaxInt32 - s.graph.vertices }

func (s *Sampler) padded(entries int) int { return min(padded(entries), s.most()) }

// padded rounds n up to the next eighth of a power of two, so that few sizes occur.
func padded(n int) int {
	step := max(256, 1<<bits.Len(uint(n))>>4)
	return (n + step - 1) / step * step
}

// reserve allocates the memory of b and the temporary memory.
func (s *Sampler) reserve(on *driver.Thread, b *Batch) error {
	for len(b.hops) < len(s.entries) {
		b.hops = append(b.hops, hop{})
	}
	if err := on.Finish(s.stream); err != nil { // memory that grows must not be in use
		return err
	}
	header := s.layout().roots() + 4*s.roots
	err := errors.Join(reserve(on, &b.header, header), reservePinned(on, &b.pinned, header), reserve(on, &b.vertices, s.vertexBytes()))
	for h := range s.entries {
		sizes := s.hopBytes(h)
		for i, m := range [...]*driver.Memory{&b.hops[h].indptr, &b.hops[h].indices, &b.hops[h].values, &b.hops[h].columns, &b.hops[h].targets, &b.hops[h].edges} {
			err = errors.Join(err, reserve(on, m, sizes[i]))
		}
	}
	sizes := s.workBytes()
	for i, m := range [...]*driver.Memory{&s.table, &s.ranks, &s.partial, &s.order, &s.digits} {
		err = errors.Join(err, reserve(on, m, sizes[i]))
	}
	return err
}

// vertexBytes returns the size of a batch's vertices.
func (s *Sampler) vertexBytes() int { return 4*s.room(len(s.entries)) + 4 }

// hopBytes returns the sizes of a hop's memories, in their order; 0 for those that it
// does not need.
func (s *Sampler) hopBytes(h int) (sizes [6]int) {
	n, targets, sources := s.entries[h], s.room(h), s.room(h+1)
	sizes = [6]int{8*targets + 8, 4 * n, 0, 8*sources + 8, 4 * n, 4 * n}
	if s.o.Form.Weighting != sample.Ones {
		sizes[2] = 4 * n
	}
	return sizes
}

// workBytes returns the sizes of the temporary memory: table, ranks, partial, order,
// digits.
func (s *Sampler) workBytes() [5]int {
	most := s.room(len(s.entries))
	for _, n := range s.entries {
		most = max(most, n)
	}
	counts := 256 * sorting(most)
	return [5]int{8 * s.places(), 8*most + 8, 8 * tiles(max(most, counts)), 4 * most, 8*counts + 16}
}

// places returns the size of the table, of which at most half is occupied.
func (s *Sampler) places() int { return 1 << bits.Len(uint(2*s.room(len(s.entries))-1)) }

// list copies the batch's vertices to host memory.
func (s *Sampler) list(on *driver.Thread, b *Batch) error {
	err := reservePinned(on, &b.listed, s.vertexBytes())
	if err == nil {
		err = on.Fetch(b.listed.Slice(0, b.Vertices.Len()), b.Vertices, s.stream)
	}
	if err == nil {
		err = on.Finish(s.stream)
	}
	if err != nil {
		return fmt.Errorf("sample on the GPU: %w", err)
	}
	b.Listed = driver.Numbers[uint32](b.listed)[:b.Inputs]
	return nil
}

// blocks sets the batch's blocks.
func (s *Sampler) blocks(b *Batch, said counts) {
	hops := len(s.entries)
	b.Inputs, b.Summed = said.vertices(hops), 0
	if s.o.Fused {
		b.Summed = int(said.wanted(hops))
	}
	b.Vertices = b.vertices.Slice(0, 4*b.Inputs)
	b.Blocks = slices.Grow(b.Blocks, hops)[:hops]
	for h := range hops {
		rows, cols, entries := said.vertices(h), said.vertices(h+1), int(said.wanted(h))
		m := &b.hops[h]
		block := Block{
			Rows: rows, Cols: cols, Entries: entries,
			Vertices: b.vertices.Slice(0, 4*cols), Indptr: m.indptr.Slice(0, 8*rows+8), Indices: m.indices.Slice(0, 4*entries),
			Columns: m.columns.Slice(0, 8*cols+8), Targets: m.targets.Slice(0, 4*entries), Edges: m.edges.Slice(0, 4*entries),
		}
		if s.o.Form.Weighting != sample.Ones {
			block.Valued, block.Values = true, m.values.Slice(0, 4*entries)
		}
		b.Blocks[hops-1-h] = block
	}
}
