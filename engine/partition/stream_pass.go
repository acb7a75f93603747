package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

const (
	// streamThreads bounds the memory allocated for threads.
	streamThreads = 8
	// streamSubBlock is the maximum number of vertices that choose before any of them is
	// placed. Small graphs use fewer, since vertices placed together do not see each
	// other.
	streamSubBlock = 2048
	// streamInline is the number of neighbours below which waking another thread does not
	// pay off.
	streamInline      = 1 << 13
	streamChoiceBytes = uint64(unsafe.Sizeof(streamChoice{}))
)

// streamChoice holds the most frequent labels among a vertex's neighbours.
type streamChoice struct {
	label [3]uint16 // parts; streamNone ends the list
	wide  [3]uint32 // clusters, while they grow; none ends the list
	count [3]uint32
	own   uint32 // neighbours with the vertex's own label
}

// A streamWorker counts the labels of neighbours. Its counts are zero between vertices.
// Its arrays have room for any label, so that no index needs a bounds check.
type streamWorker struct {
	counts  [1 << 16]uint32
	touched [1 << 16]uint16
	tally   *tally // of clusters
	wrong   bool   // found a neighbour that does not exist
}

// streamChoose fills in the choice of one vertex. It writes nothing else but the worker.
type streamChoose func(w *streamWorker, v uint32, row []uint32, choice *streamChoice)

type streamPlace func(v uint32, weights []uint32, degree int, choice *streamChoice)

// pass reads the graph once. All threads compute choices for a sub-block of vertices from
// the current labels; then place is called for one vertex after the other. Block
// boundaries do not affect the result.
func (s *streamer) pass(choose streamChoose, place streamPlace) error {
	next, held := uint32(0), 0 // held: vertices of the sub-block waiting to be placed
	step := int(min(streamSubBlock, max(16, s.n/256)))
	s.moved = 0
	err := s.g.Blocks(s.ctx, func(b Block) error {
		count, err := s.check(b, next)
		if err != nil {
			return err
		}
		for from := 0; from < count; {
			if err := context.Cause(s.ctx); err != nil {
				return err
			}
			to := min(from+step-held, count)
			if err := s.chooseAll(choose, b, from, to, held); err != nil {
				return err
			}
			next += uint32(to - from)
			held += to - from
			from = to
			if held < step && next < s.n {
				continue
			}
			for i := range held {
				place(next-uint32(held-i), s.weights[i*s.c:(i+1)*s.c], s.degrees[i], &s.choices[i])
			}
			held = 0
		}
		s.report(count)
		return nil
	})
	if err == nil {
		err = context.Cause(s.ctx)
	}
	if err == nil && next != s.n {
		err = fmt.Errorf("%w: it has %d vertices, and %d came", ErrGraph, s.n, next)
	}
	return err
}

// check returns the number of vertices of a block, or an error if it is malformed.
func (s *streamer) check(b Block, next uint32) (int, error) {
	count := len(b.Indptr) - 1
	wrong := count < 0 || b.First != next || uint64(count) > uint64(s.n-next) || len(b.Weights) != count*s.c ||
		b.Indptr[0] != 0 || b.Indptr[count] != int64(len(b.Indices)) || !slices.IsSorted(b.Indptr)
	if wrong {
		return 0, fmt.Errorf("%w: the block of vertices from %d on does not fit together", ErrGraph, next)
	}
	return count, nil
}

// chooseAll fills in the choices, weights and degrees of the vertices from from to to of a
// block, after the held ones.
func (s *streamer) chooseAll(choose streamChoose, b Block, from, to, held int) error {
	copy(s.weights[held*s.c:], b.Weights[from*s.c:to*s.c])
	for i := from; i < to; i++ {
		s.degrees[held+i-from] = int(b.Indptr[i+1] - b.Indptr[i])
	}
	first, last := b.Indptr[from], b.Indptr[to]
	threads := len(s.workers)
	if last-first < streamInline {
		threads = 1
	}
	var running sync.WaitGroup
	start := from
	for w := range threads - 1 {
		bound := first + (last-first)*int64(w+1)/int64(threads)
		length, _ := slices.BinarySearch(b.Indptr[start:to], bound)
		mine, end := start, start+length
		running.Go(func() { s.chooseSome(choose, s.workers[w], b, mine, end, held+mine-from) })
		start = end
	}
	s.chooseSome(choose, s.workers[threads-1], b, start, to, held+start-from)
	running.Wait()
	for _, w := range s.workers {
		if w.wrong {
			return s.noVertex(b)
		}
	}
	return nil
}

// noVertex is the error for a block with a neighbour that does not exist.
func (s *streamer) noVertex(b Block) error {
	return fmt.Errorf("%w: a neighbour among the vertices from %d on is no vertex", ErrGraph, b.First)
}

// chooseSome fills in the choices of the vertices start to end, beginning at index at.
func (s *streamer) chooseSome(choose streamChoose, w *streamWorker, b Block, start, end, at int) {
	for i := start; i < end && !w.wrong; i++ {
		choose(w, b.First+uint32(i), b.Indices[b.Indptr[i]:b.Indptr[i+1]], &s.choices[at+i-start])
	}
}

// count finds the parts that most of a vertex's neighbours are in.
func (s *streamer) count(w *streamWorker, v uint32, row []uint32, choice *streamChoice) {
	label, counts, touched := s.label, &w.counts, &w.touched
	// At most as many labels are touched as exist, so n does not overflow.
	n := uint16(0)
	for _, u := range row {
		if int(u) >= len(label) {
			w.wrong = true
			break
		}
		l := label[u]
		count := counts[l]
		counts[l] = count + 1
		touched[n] = l // advanced only if the label is new: no branch to mispredict
		if count == 0 {
			n++
		}
	}
	*choice = s.best(v, counts, touched[:n])
	for _, l := range touched[:n] {
		counts[l] = 0
	}
}

// best returns the three most frequent labels other than the vertex's own; the seed
// breaks ties anew for each vertex.
func (s *streamer) best(v uint32, counts *[1 << 16]uint32, touched []uint16) streamChoice {
	own := s.label[v]
	choice := streamChoice{label: [3]uint16{streamNone, streamNone, streamNone}}
	if own != streamNone {
		choice.own = counts[own]
	}
	var first, second, third uint64
	turn := randomMix(s.o.Seed, uint64(v))
	for _, l := range touched {
		if l == own || l == streamNone {
			continue
		}
		// The count, then some random bits, then the label.
		rank := uint64(counts[l])<<32 | (uint64(l)^turn)*randomOdd>>48<<16 | uint64(l)
		switch {
		case rank <= third:
		case rank > first:
			first, second, third = rank, first, second
		case rank > second:
			second, third = rank, second
		default:
			third = rank
		}
	}
	for i, rank := range [3]uint64{first, second, third} {
		if rank != 0 {
			choice.label[i], choice.count[i] = uint16(rank), uint32(rank>>32)
		}
	}
	return choice
}
