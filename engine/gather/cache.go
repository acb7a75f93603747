package gather

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Cache fetches and keeps the rows of so many remote vertices, and returns the memory
// that they take. It selects those that are the sources of the most local edges. The
// source must be ready, and nobody may gather yet. Shards without edges do not count;
// rows cached before are dropped.
func (s *Source) Cache(ctx context.Context, rows int, shards []*graph.Shard, tally *peer.Tally) (bytes uint64, err error) {
	s.Drop()
	if rows <= 0 {
		return 0, nil
	}
	vertices := s.hottest(rows, shards)
	var r Rows
	if err := s.gather(ctx, &r, [][]uint32{vertices}, 0, 0, Options{}, tally); err != nil {
		return 0, fmt.Errorf("bring rows of features that are used often: %w", err)
	}
	s.kept, s.hot = r.Far, newHot(s.store.Vertices(), vertices, r.Places[0])
	return s.kept.Bytes() + s.hot.bytes(), nil
}

// Kept returns the rows that Cache has fetched; nil: none.
func (s *Source) Kept() *features.Far {
	if s.kept.Rows() == 0 {
		return nil
	}
	return &s.kept
}

// window is how many vertices' edges are counted at a time.
const window = 1 << 24

// hottest returns the vertices to cache, ascending: of those that are as hot as the
// coldest of them, the first ones.
func (s *Source) hottest(rows int, shards []*graph.Shard) []uint32 {
	with := map[uint32]int{} // number of edges: number of vertices
	s.count(shards, func(_, edges uint32) { with[edges]++ })
	// Keep all with more edges than least, and left of those with exactly least.
	least, left := uint32(0), rows
	classes := slices.Sorted(maps.Keys(with))
	for i, n := range slices.Backward(classes) {
		if least = n; left <= with[n] || i == 0 {
			break
		}
		left -= with[n]
	}
	var vertices []uint32
	s.count(shards, func(v, n uint32) {
		if n < least {
			return
		}
		if n == least {
			if left == 0 {
				return
			}
			left--
		}
		vertices = append(vertices, v)
	})
	return vertices
}

// count calls see for each remote vertex, ascending, with the number of edges of the
// shards that it is the source of. It goes through the edges once for each window.
func (s *Source) count(shards []*graph.Shard, see func(v, edges uint32)) {
	total := s.store.Vertices()
	counts := make([]uint32, min(total, window))
	for first := uint32(0); first < total; first += uint32(len(counts)) {
		counts = counts[:min(total-first, window)]
		clear(counts)
		for _, shard := range shards {
			for _, source := range shard.Indices {
				if at := uint32(source) - first; at < uint32(len(counts)) {
					counts[at]++
				}
			}
		}
		for i, n := range counts {
			if v := first + uint32(i); !s.store.Reads(v) {
				see(v, n)
			}
		}
	}
}

// Keep has the source keep rows of other nodes once they have come, so that no row comes twice:
// all of them where they take at most so many bytes, else those of the sources of the most local
// edges. It returns how many rows will be kept, of how many, and the memory that they take in the
// end. Dense rows take it as they come; sparse ones, whose size is not known before, come now. The
// source must be ready, and nobody may gather yet. Rows kept before are dropped.
func (s *Source) Keep(ctx context.Context, most uint64, shards []*graph.Shard, tally *peer.Tally) (rows, of int, bytes uint64, err error) {
	s.Drop()
	rows, of = s.Affords(most)
	if rows == 0 {
		return 0, of, 0, nil
	}
	if s.form.Sparse() {
		bytes, err = s.Cache(ctx, of, shards, tally)
		return s.kept.Rows(), of, bytes, err
	}
	each := s.rowSize()
	if all := uint64(of)*each + uint64(s.store.Vertices())/4; all <= most && s.store.Vertices() < math.MaxUint32/4 {
		h := hot{first: s.store.Vertices(), all: true}
		if s.await(h, int(h.first)) {
			s.coming.awaited = int64(of)
			return of, of, uint64(of)*each + s.hot.bytes(), nil
		}
	}
	vertices := s.hottest(rows, shards)
	places := make([]uint32, len(vertices))
	for i := range places {
		places[i] = s.store.Vertices() + uint32(i)
	}
	if len(vertices) == 0 || !s.await(newHot(s.store.Vertices(), vertices, places), len(vertices)) {
		return 0, of, 0, nil
	}
	s.coming.awaited = int64(len(vertices))
	return len(vertices), of, uint64(len(vertices))*each + s.hot.bytes(), nil
}

// Affords returns how many rows of other nodes Keep would keep in so many bytes, of how many.
func (s *Source) Affords(most uint64) (rows, of int) {
	each := s.rowSize()
	if of = s.remote(); of == 0 || each == 0 {
		return 0, of
	}
	if s.form.Sparse() {
		const spread = 2 // how much more than the mean of some rows all may take
		if uint64(of)*each*spread > most {
			return 0, of
		}
		return of, of
	}
	const slots = 32 // bytes of a vertex in a table of which a quarter is used
	if rows = int(min(uint64(of), most/(each+slots))); uint64(rows)*each+TableBytes(rows) > most {
		rows = 0 // the smallest table takes all of it
	}
	return rows, of
}

// rowSize returns the bytes of a row, on average where rows are sparse; 0: nothing is known.
func (s *Source) rowSize() uint64 {
	each := uint64(math.Ceil(s.RowBytes()))
	if each == 0 && !s.form.Sparse() {
		each = uint64(s.form.RowBytes())
	}
	return each
}

// await makes room for rows that come one by one, and reports whether there is any. Memory that
// nobody has touched is nobody's, but a system may refuse more than it has. The collector knows
// nothing of this one: it would let as much garbage grow beside it.
func (s *Source) await(h hot, rows int) bool {
	room, err := unix.Mmap(-1, 0, rows*s.form.RowBytes()+8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	h.awaits(rows)
	s.coming.came.Store(0)
	s.coming.pace.clear()
	s.room, s.hot = room, h
	s.rows = s.kept.Within(s.form, rows, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(room))), len(room)/8))
	return true
}

// Complete brings the rows that are to be kept and have not come, once half have, or once the epochs
// that are left would read a third as many new ones if these went on to come as lately: steps would
// ask for some again and again, and wait. Before, it does nothing: a run that needs few rows gets no
// others.
// It is called before each epoch. Others may gather meanwhile.
func (s *Source) Complete(ctx context.Context, epochs int, tally *peer.Tally) (rows int, err error) {
	if s.coming.awaited == 0 {
		return 0, nil
	}
	const most = 2 // at most one in so many is missing
	const dear = 3 // rows that steps wait for take so many times as long as rows that come together
	lacking := s.coming.awaited - s.coming.came.Load()
	if later := s.coming.pace.begin(epochs); most*lacking > s.coming.awaited && dear*later < float64(lacking) {
		return 0, nil
	}
	var missing []uint32
	for v := range s.store.Vertices() {
		if _, is := s.hot.row(v); !is || s.store.Reads(v) {
			continue
		}
		if _, here := s.hot.place(v); !here {
			missing = append(missing, v)
		}
	}
	const atOnce = 8 << 20 // bytes
	rows, err = s.complete(ctx, missing, max(1, atOnce/s.form.RowBytes()), tally)
	if err != nil {
		return rows, fmt.Errorf("bring the last rows of features that are kept: %w", err)
	}
	s.coming.awaited = 0
	return rows, nil
}

// complete brings rows, so many at a time. Each time has vertices from the whole range, so that it
// asks all owners: nodes that asked for one owner's rows after the other's would all wait for the
// same one.
func (s *Source) complete(ctx context.Context, missing []uint32, atOnce int, tally *peer.Tally) (rows int, err error) {
	var r Rows
	var some []uint32
	times := (len(missing) + atOnce - 1) / atOnce
	for first := range times {
		some = some[:0]
		for i := first; i < len(missing); i += times {
			some = append(some, missing[i])
		}
		if err := s.gather(ctx, &r, [][]uint32{some}, 0, 0, Options{}, tally); err != nil {
			return rows, err
		}
		rows += r.Remote
	}
	return rows, nil
}

// remote counts the vertices whose rows are not here.
func (s *Source) remote() (n int) {
	for shard, first := range s.layout.Firsts[:len(s.layout.Owners)] {
		if end := s.layout.Firsts[shard+1]; first < end && !s.store.Reads(first) {
			n += int(end - first)
		}
	}
	return n
}

// keep copies rows that have come to where they are kept.
func (s *Source) keep(r *Rows) {
	if s.rows == nil {
		return
	}
	bytes := s.form.RowBytes()
	for i, v := range r.plan.far {
		s.put(v, r.dense[int(r.plan.rows[i])*bytes:][:bytes])
	}
	s.coming.pace.note(r.Cached+r.Remote, s.coming.came.Load())
}

// put copies a row to where it is kept, if it is to be and is not there.
func (s *Source) put(v uint32, from []byte) {
	if row, is := s.hot.row(v); is && s.hot.claim(row) {
		copy(s.rows[int(row)*len(from):], from)
		s.hot.done(row)
		s.coming.came.Add(1)
	}
}

// Drop gives up all rows that are kept. Nobody may gather, or read what was gathered.
func (s *Source) Drop() {
	s.kept, s.hot, s.rows, s.coming.awaited = features.Far{}, hot{}, nil, 0
	if s.room != nil {
		_ = unix.Munmap(s.room) // it is a mapping of ours
		s.room = nil
	}
}
