package gather

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Keep has the source keep rows of other nodes once they have come, so that no row comes twice:
// all of them where they take at most so many bytes, else those of the sources of the most local
// edges. It returns how many rows will be kept, of how many, and the memory that they take in the
// end. Dense rows take it as they come; sparse ones, whose size is not known before, come now. The
// source must be ready, and nobody may gather yet. Rows kept before are dropped.
func (s *Source) Keep(ctx context.Context, most uint64, shards []*graph.Shard, tally *peer.Tally) (rows, of int, bytes uint64, err error) {
	s.Drop()
	of = s.remote()
	each := uint64(math.Ceil(s.RowBytes()))
	if each == 0 && !s.form.Sparse() {
		each = uint64(s.form.RowBytes())
	}
	if of == 0 || each == 0 {
		return 0, of, 0, nil
	}
	const slots = 32 // bytes of a vertex in a table of which a quarter is used
	if rows = int(min(uint64(of), most/(each+slots))); uint64(rows)*each+TableBytes(rows) > most {
		rows = 0 // the smallest table takes all of it
	}
	if s.form.Sparse() {
		bytes, err = s.Cache(ctx, rows, shards, tally)
		return s.kept.Rows(), of, bytes, err
	}
	h := hot{first: s.store.Vertices()}
	var long int // rows that there is room for, used or not
	if all := uint64(of)*each + uint64(h.first)/4; all <= most && h.first < math.MaxUint32/4 {
		h.all, rows, long, bytes = true, of, int(h.first), uint64(of)*each
	} else {
		vertices := s.hottest(rows, shards)
		places := make([]uint32, len(vertices))
		for i := range places {
			places[i] = h.first + uint32(i)
		}
		h = newHot(h.first, vertices, places)
		rows, long, bytes = len(vertices), len(vertices), uint64(len(vertices))*each
	}
	if rows == 0 {
		return 0, of, 0, nil
	}
	h.awaits(long)
	// Memory that nobody has touched is nobody's. The collector knows nothing of this one: it
	// would let as much garbage grow beside it.
	room, err := unix.Mmap(-1, 0, long*s.form.RowBytes()+8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, of, 0, fmt.Errorf("make room for rows of other nodes: %w", err)
	}
	s.room = room
	s.rows = s.kept.Within(s.form, long, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(room))), len(room)/8))
	s.hot = h
	return rows, of, bytes + h.bytes(), nil
}

// remote counts the vertices whose rows are not here.
func (s *Source) remote() (n int) {
	for shard, first := range s.layout.Firsts[:len(s.layout.Owners)] {
		if end := s.layout.Firsts[shard+1]; first < end && !s.store.Has(first) {
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
		row, is := s.hot.row(v)
		if !is || !s.hot.claim(row) {
			continue
		}
		copy(s.rows[int(row)*bytes:][:bytes], r.dense[int(r.plan.rows[i])*bytes:])
		s.hot.done(row)
	}
}

// Drop gives up all rows that are kept. Nobody may gather, or read what was gathered.
func (s *Source) Drop() {
	s.kept, s.hot, s.rows = features.Far{}, hot{}, nil
	if s.room != nil {
		_ = unix.Munmap(s.room) // it is a mapping of ours
		s.room = nil
	}
}
