package sample

import (
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// group is the number of vertices that go through a stage together: enough for their
// cache misses to overlap, few enough that fetched data stays in the L1 cache.
const group = 64

// A row is the state of a target whose neighbours are being drawn.
type row struct {
	from   int64 // offset in the part's indices
	held   int32 // entries in the part; of a remote row, those drawn
	drawn  int32 // entries drawn; equal to held if all are
	degree int32 // degree in the graph
	part   uint16
	loop   bool // whether a self-loop is added
}

var errTooMany = errors.New("a block of more than 2147483647 edges: use fewer roots or smaller fan-outs")

// A flock is a group of targets in flight through the stages.
type flock struct {
	first, end int // of the targets
	rows       [group]row
	positions  []uint32 // drawn positions, row after row, of rows that are not taken whole
	entries    int
	at         int // index of its first entry in the block
}

// hop draws the rows of all vertices that the batch has so far. It processes them in
// groups through stages, each of which prefetches what the next will read: row bounds,
// then neighbours, then their numbers in the batch. The stages of different groups are
// interleaved, which gives memory time to respond.
func (s *Sampler) hop(b *Batch, block *Block, fanout int, key keyed.Key) error {
	targets := len(b.vertices)
	groups := (targets + group - 1) / group
	block.indptr = append(slices.Grow(block.indptr[:0], targets+1), 0)
	block.indices, block.values = block.indices[:0], block.values[:0]
	block.along.Rows, block.along.loops = block.along.Rows[:0], block.along.loops[:0]
	for i := range groups + 3 {
		if i < groups {
			f := s.flock(i)
			f.first, f.end = i*group, min((i+1)*group, targets)
			s.locate(f, b.vertices[f.first:f.end])
		}
		if i := i - 1; i >= 0 && i < groups {
			f := s.flock(i)
			s.draw(f, b.vertices[f.first:f.end], fanout, key)
		}
		if i := i - 2; i >= 0 && i < groups {
			f := s.flock(i)
			if f.entries > math.MaxInt32-len(block.indices) {
				return errTooMany
			}
			s.collect(f, block, b.vertices[f.first:f.end])
		}
		if i := i - 3; i >= 0 && i < groups {
			f := s.flock(i)
			if s.valued {
				s.weigh(f, block, b.vertices[f.first:f.end])
			}
			if s.o.Form.EdgeFeatures > 0 {
				s.describe(f, block, b.vertices[f.first:f.end])
			}
			b.vertices = s.seen.number(block.indices[f.at:][:f.entries], b.vertices)
		}
	}
	block.Own, block.Vertices, block.Stamp, block.There = 0, b.vertices, tensor.NewStamp(), nil
	block.Rows, block.Cols = targets, len(b.vertices)
	block.Indptr, block.Indices, block.Values, block.Transposed = block.indptr, block.indices, nil, nil
	block.Related, block.Apart, block.Reach, block.Idle, block.Together, block.Along = nil, nil, nil, nil, nil, nil
	if s.valued {
		block.Values = slices.Grow(block.values, 1) // nil has another meaning than empty
	}
	return nil
}

// flock returns the memory of group i: four groups are in flight at a time.
func (s *Sampler) flock(i int) *flock { return &s.flocks[i%len(s.flocks)] }

// locate finds the parts of the targets and prefetches the bounds of their rows, and their
// degrees.
func (s *Sampler) locate(f *flock, targets []uint32) {
	rows := f.rows[:len(targets)]
	if s.degrees.flat != nil && len(targets) > 0 {
		prefetch(unsafe.Pointer(&s.degrees.flat[0]), &targets[0], len(targets), 2)
	}
	for i, v := range targets {
		n := s.t.of(v)
		p := &s.parts[n]
		rows[i].part = uint16(n)
		at := v - p.first
		prefetch(unsafe.Pointer(unsafe.SliceData(p.indptr)), &at, 1, 3)
	}
}

// draw chooses the entries of each row, prefetches and counts them.
func (s *Sampler) draw(f *flock, targets []uint32, fanout int, key keyed.Key) {
	f.positions = f.positions[:0]
	if s.fanouts != nil {
		s.readRelations(f, targets)
	}
	entries, loops, marks := 0, s.o.Form.SelfLoops, s.degrees.marks
	for i, v := range targets {
		r := &f.rows[i]
		p := &s.parts[r.part]
		switch {
		case p.far != nil:
			s.weave(r)
			entries += int(r.held)
		case marks != nil:
			r.loop = math.Float32bits(marks[v])&sign == 0
		default:
			r.loop = loops && s.degrees.lacks(int(r.part), v-p.first)
		}
		if r.loop {
			entries++
		}
		if p.far != nil {
			continue
		}
		bounds := p.indptr[v-p.first:][:2]
		r.from = bounds[0]
		r.degree = int32(bounds[1] - bounds[0])
		r.held, r.drawn = r.degree, r.degree
		if r.degree == 0 {
			continue
		}
		if s.fanouts != nil {
			entries += s.drawEach(f, r, p, key.With(uint64(v)))
			continue
		}
		base := unsafe.Pointer(&p.indices[r.from])
		if fanout == 0 || int(r.degree) <= fanout {
			entries += int(r.degree)
			prefetchRun(base, r.degree)
			if p.weights != nil {
				prefetchRun(unsafe.Pointer(&p.weights[r.from]), r.degree)
			}
			continue
		}
		r.drawn = int32(fanout)
		entries += fanout
		at := len(f.positions)
		f.positions = slices.Grow(f.positions, fanout)[:at+fanout]
		drawn := f.positions[at:]
		s.without(drawn, uint32(r.degree), key.With(uint64(v)))
		prefetch(base, &drawn[0], fanout, 2)
		if p.weights != nil {
			prefetch(unsafe.Pointer(&p.weights[r.from]), &drawn[0], fanout, 2)
		}
	}
	f.entries = entries
}

// drawEach chooses the entries of a row relation by relation, prefetches and counts them.
func (s *Sampler) drawEach(f *flock, r *row, p *part, key keyed.Key) (entries int) {
	at := len(f.positions)
	positions, all := s.pickEach(f.positions, p.weights[r.from:][:r.degree], s.fanouts, key)
	f.positions = positions
	base := unsafe.Pointer(&p.indices[r.from])
	if all {
		prefetchRun(base, r.degree)
		return int(r.degree)
	}
	drawn := f.positions[at:]
	prefetch(base, &drawn[0], len(drawn), 2)
	r.drawn = int32(len(drawn))
	return len(drawn)
}

// readRelations prefetches the relations of the rows' entries, which drawEach reads.
func (s *Sampler) readRelations(f *flock, targets []uint32) {
	for i, v := range targets {
		p := &s.parts[f.rows[i].part]
		if p.far != nil {
			continue
		}
		bounds := p.indptr[v-p.first:][:2]
		if n := bounds[1] - bounds[0]; n > 0 {
			prefetchRun(unsafe.Pointer(&p.weights[bounds[0]]), int32(n))
		}
	}
}

// lines are the indices of 4-byte elements at which the first cache lines of a run begin.
var lines = [...]uint32{0, 16, 32, 48, 64, 80, 96, 112}

// prefetchRun prefetches the first lines of n elements of 4 bytes. The processor's own
// prefetcher follows long runs.
func prefetchRun(base unsafe.Pointer, n int32) {
	prefetch(base, &lines[0], min(len(lines), int(n+15)/16), 2)
}

// collect reads the sources of the rows and prefetches their numbers.
func (s *Sampler) collect(f *flock, block *Block, targets []uint32) {
	f.at = len(block.indices)
	block.indices = slices.Grow(block.indices, f.entries)[:f.at+f.entries]
	to, positions := block.indices[f.at:], f.positions
	n := int64(f.at)
	for i := range targets {
		r := &f.rows[i]
		if r.loop {
			to[0] = int32(targets[i])
			to = to[1:]
			n++
		}
		from := s.parts[r.part].indices[r.from:][:r.held]
		if r.drawn == r.held {
			copy(to, from)
		} else {
			to := to[:r.drawn]
			for j, at := range positions[:r.drawn] {
				to[j] = from[at]
			}
			positions = positions[r.drawn:]
		}
		to = to[r.drawn:]
		n += int64(r.drawn)
		block.indptr = append(block.indptr, n)
	}
	if f.entries == 0 {
		return
	}
	ids := (*uint32)(unsafe.Pointer(&block.indices[f.at]))
	s.seen.prefetch(ids, f.entries)
	if s.degrees.flat != nil {
		prefetch(unsafe.Pointer(&s.degrees.flat[0]), ids, f.entries, 2)
	}
}

// weigh sets the values of the rows' entries, before the sources are numbered.
func (s *Sampler) weigh(f *flock, block *Block, targets []uint32) {
	block.values = slices.Grow(block.values, f.entries)[:f.at+f.entries]
	values, sources, positions := block.values[f.at:], block.indices[f.at:], f.positions
	for i, v := range targets {
		r := &f.rows[i]
		n := int(r.drawn)
		if r.loop {
			values[0] = 1
			n++
		}
		drawn := values[n-int(r.drawn) : n]
		p := &s.parts[r.part]
		mean, exact := s.o.Form.Weighting == Ones && s.o.Form.Relations == 0, s.o.Form.Relations > 0 || s.o.Form.Weighting == Own
		weights := p.weights
		if mean {
			weights = nil
		} else if weights != nil {
			weights = weights[r.from:][:r.held]
		}
		scale := float32(1)
		if r.drawn < r.degree && !mean && !exact {
			scale = float32(r.degree) / float32(r.drawn)
		}
		switch {
		case weights == nil:
			for j := range drawn {
				drawn[j] = scale
			}
		case r.drawn < r.held:
			for j, at := range positions[:r.drawn] {
				drawn[j] = scale * weights[at]
			}
		case scale == 1:
			copy(drawn, weights)
		default:
			for j, w := range weights {
				drawn[j] = scale * w
			}
		}
		if p.times != nil {
			r.stand(values[:n], p, v-p.first, positions, mean)
		}
		if r.drawn < r.held {
			positions = positions[r.drawn:]
		}
		if s.degrees.flat != nil {
			s.normalise(values[:n], sources, v)
		}
		values, sources = values[n:], sources[n:]
	}
}

// normalise multiplies values by 1/sqrt(degree) of both ends of the edges to v, where all
// degrees are here.
func (s *Sampler) normalise(values []float32, sources []int32, v uint32) {
	flat := s.degrees.flat
	own := unsigned(flat[v])
	for i, u := range sources[:len(values)] {
		values[i] *= own * unsigned(flat[u])
	}
}

// describe appends the features of the rows' entries. Those of added self-loops are left for describeLoops.
func (s *Sampler) describe(f *flock, block *Block, targets []uint32) {
	columns, positions := s.o.Form.EdgeFeatures, f.positions
	to := slices.Grow(block.along.Rows, columns*f.entries)
	for i := range targets {
		r := &f.rows[i]
		if r.loop {
			to = to[:len(to)+columns]
			block.along.loops = append(block.along.loops, int32(f.first+i))
		}
		p := &s.parts[r.part]
		if r.drawn == r.held {
			for e := r.from; e < r.from+int64(r.held); e++ {
				to = p.edges.Append(to, p.place(e))
			}
		} else {
			for _, at := range positions[:r.drawn] {
				to = p.edges.Append(to, p.place(r.from+int64(at)))
			}
			positions = positions[r.drawn:]
		}
	}
	block.along.Rows = to
}
