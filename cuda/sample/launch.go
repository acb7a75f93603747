//go:build cuda

package sample

import (
	"math"
	"math/bits"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// ofBlock is the number of threads per block of all kernels here.
const ofBlock = 256

// The number of blocks for n threads, warps, numbers to sum up, or entries to sort.
func threads(n int) int { return (n + ofBlock - 1) / ofBlock }
func warps(n int) int   { return (n + 7) / 8 }
func tiles(n int) int   { return n/1024 + 1 }
func sorting(n int) int { return (n + 2047) / 2048 }

// queue records the launches of a batch, until one fails. Their shapes depend on
// capacities and not on actual counts, so all of them form one chain that changes little
// from batch to batch.
type queue struct {
	on     *driver.Thread
	stream driver.Stream
	tape   *driver.Tape
	err    error
}

func (q *queue) launch(k *driver.Kernel, blocks int, arguments ...driver.Argument) {
	if q.err != nil || blocks == 0 {
		return
	}
	q.tape.Record(k, driver.Shape{Grid: [3]int{blocks, 1, 1}, Block: [3]int{ofBlock, 1, 1}}, arguments...)
	if q.tape.Full() {
		q.play()
	}
}

func (q *queue) play() {
	if q.err == nil {
		q.err = q.on.Play(q.tape, q.stream)
	}
	q.tape.Forget()
}

// batch runs all launches of a batch and waits for their end.
func (s *Sampler) batch(on *driver.Thread, b *Batch) error {
	q := &queue{on: on, stream: s.stream, tape: s.tape}
	hops := len(s.entries)
	q.err = on.Send(b.header.Slice(0, b.pinned.Len()), b.pinned, s.stream)
	if q.err == nil {
		q.err = on.Fill(s.table.Slice(0, 8*s.places()), math.MaxInt32, s.stream)
	}
	roots := b.header.Slice(s.layout().roots(), b.header.Len()).Argument()
	table, mask, count := s.table.Argument(), driver.Int32(int32(s.places()-1)), b.word(verticesWord(0))
	q.launch(s.numberRoots, threads(s.roots), b.vertices.Argument(), table, mask, roots, count)
	q.launch(s.numberCheck, threads(s.roots), b.word(0), table, mask, roots, count)
	for h := range hops {
		s.draw(q, b, h)
		s.number(q, b, h)
		s.transpose(q, b, h)
	}
	if s.o.Fused {
		s.count(q, b)
	}
	q.play()
	if q.err == nil {
		q.err = on.Fetch(b.pinned.Slice(0, 8*s.layout().told()), b.header.Slice(0, 8*s.layout().told()), s.stream)
	}
	if q.err != nil {
		return q.err
	}
	return on.Finish(s.stream)
}

// word returns the address of a word of the header.
func (b *Batch) word(i int) driver.Argument { return b.header.Slice(8*i, 8*i+8).Argument() }

var null = driver.Memory{}.Argument()

// draw samples a hop's rows, with the ids of their sources.
func (s *Sampler) draw(q *queue, b *Batch, h int) {
	m, g := &b.hops[h], &s.graph
	targets, room := b.word(verticesWord(h)), s.room(h)
	fanout := driver.Int32(int32(s.o.Fanouts[h]))
	q.launch(s.drawCounts, tiles(room), m.indptr.Argument(), s.partial.Argument(), targets, b.vertices.Argument(),
		g.indptr.Argument(), g.indices.Argument(), g.weights.Argument(), g.loops.Argument(), g.inverse.Argument(), fanout)
	q.launch(s.scanApply, tiles(room), m.indptr.Argument(), s.partial.Argument(), targets, null,
		driver.Int64(int64(s.entries[h])), b.word(wantedWord(h)))
	values := null
	if s.o.Form.Weighting != sample.Ones {
		values = m.values.Argument()
	}
	q.launch(s.drawSources, warps(room), m.indices.Argument(), values, m.indptr.Argument(), targets, b.word(heldWord(h)), b.vertices.Argument(),
		g.indptr.Argument(), g.indices.Argument(), g.weights.Argument(), g.loops.Argument(), g.inverse.Argument(), fanout, b.word(s.layout().keyWord(h)))
}

// count counts the entries of the hop that has no block.
func (s *Sampler) count(q *queue, b *Batch) {
	h, g := len(s.entries), &s.graph
	targets, room := b.word(verticesWord(h)), s.room(h)
	q.launch(s.drawCounts, tiles(room), s.ranks.Argument(), s.partial.Argument(), targets, b.vertices.Argument(),
		g.indptr.Argument(), g.indices.Argument(), g.weights.Argument(), g.loops.Argument(), g.inverse.Argument(), driver.Int32(int32(s.o.Fanouts[h])))
	q.launch(s.scanApply, tiles(room), s.ranks.Argument(), s.partial.Argument(), targets, null, driver.Int64(math.MaxInt64), b.word(wantedWord(h)))
}

// number assigns numbers to the sources, and appends new ones to the vertices.
func (s *Sampler) number(q *queue, b *Batch, h int) {
	n, sources, vertices := s.entries[h], b.hops[h].indices.Argument(), b.vertices.Argument()
	targets, entries := b.word(verticesWord(h)), b.word(heldWord(h))
	table, mask, ranks, partial := s.table.Argument(), driver.Int32(int32(s.places()-1)), s.ranks.Argument(), s.partial.Argument()
	q.launch(s.numberPlaces, threads(n), sources, table, mask, targets, entries)
	q.launch(s.numberFirsts, tiles(n), ranks, partial, table, sources, targets, entries)
	q.launch(s.scanApply, tiles(n), ranks, partial, entries, targets, driver.Int64(math.MaxInt64), b.word(newWord(h)))
	q.launch(s.numberNew, threads(n), vertices, table, ranks, sources, targets, entries)
	q.launch(s.numberSources, threads(n), sources, table, entries)
}

// transpose sorts a hop's entries by column, by 8 bits at a time. The last pass writes
// them to their final place.
func (s *Sampler) transpose(q *queue, b *Batch, h int) {
	m, n, sources := &b.hops[h], s.entries[h], s.room(h+1)
	columns, entries := m.indices.Argument(), b.word(heldWord(h))
	number := s.digits.Slice(0, 8).Argument()
	counts := s.digits.Slice(8, s.digits.Len()).Argument()
	times := max(1, (bits.Len(uint(sources-1))+7)/8)
	from := null
	for i := range times {
		to, shift := m.edges.Argument(), driver.Int32(int32(8*i))
		if (times-1-i)%2 == 1 {
			to = s.order.Argument()
		}
		q.launch(s.transposeCounts, sorting(n), counts, number, from, columns, entries, shift)
		q.launch(s.scanSums, tiles(256*sorting(n)), s.partial.Argument(), counts, number)
		q.launch(s.scanApply, tiles(256*sorting(n)), counts, s.partial.Argument(), number, null, driver.Int64(math.MaxInt64), null)
		q.launch(s.transposeSort, sorting(n), to, counts, from, columns, entries, shift)
		from = to
	}
	q.launch(s.transposeRows, threads(n), m.targets.Argument(), m.edges.Argument(), m.indptr.Argument(), b.word(verticesWord(h)), entries)
	q.launch(s.transposeColumns, threads(sources+1), m.columns.Argument(), m.edges.Argument(), columns, b.word(verticesWord(h+1)), entries)
}
