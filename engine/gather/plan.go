package gather

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A plan assigns rows to the nodes that are asked for them. Far rows are numbered
// twice: in the order in which they were found, and in the order of arrival: round
// after round, owner after owner.
type plan struct {
	far    []uint32 // vertices, in the order of finding
	owners []int32  // of far
	rows   []uint32 // of far: in the order of arrival
	ends   []int    // of rounds, in far
	counts []int    // of the rows of each owner in a round
	body   []byte   // the vertices in the order of arrival, as questions have them
}

// lay sets r for local rows, and plans the questions for the others.
func (s *Source) lay(r *Rows, sets [][]uint32, o Options) error {
	p := &r.plan
	p.far, p.ends = p.far[:0], p.ends[:0]
	r.Local, r.Cached, r.Remote, r.used = 0, 0, 0, 0
	r.Places = resize(r.Places, len(sets))
	filled, all := 0, 0
	for i, set := range sets {
		all += len(set)
		r.Places[i] = resize(r.Places[i], len(set))
		if len(set) > 0 {
			filled++
		}
	}
	if filled > 1 && !o.Apart && !o.Repeated {
		t := s.borrow(min(all, int(s.store.Vertices())))
		for i, set := range sets {
			for first := 0; first < len(set); first += group {
				end := min(first+group, len(set))
				if !t.dense {
					t.touch(set[first:end])
				}
				s.once(r, t, r.Places[i][first:end], set[first:end])
			}
		}
		t.next(len(p.far))
		s.giveBack(t)
	} else {
		for i, set := range sets {
			s.each(r, r.Places[i], set)
			if o.Apart {
				p.ends = append(p.ends, len(p.far))
			}
		}
	}
	if !o.Apart {
		p.ends = append(p.ends, len(p.far))
	}
	r.Remote = len(p.far)
	if uint64(s.beyond())+uint64(r.Remote) > math.MaxUint32 {
		return fmt.Errorf("%d rows are too many at a time: take smaller batches", r.Remote)
	}
	if r.Remote > 0 {
		s.order(r)
	}
	return nil
}

// beyond returns the place of the first requested row: those of the vertices and of
// cached rows come before it.
func (s *Source) beyond() uint32 { return s.store.Vertices() + uint32(s.kept.Rows()) }

// each places the vertices of a set, each separately.
func (s *Source) each(r *Rows, places, set []uint32) {
	store, beyond, p := s.store, s.beyond(), &r.plan
	asked, cached := len(p.far), 0
	for i, v := range set {
		if store.Reads(v) {
			places[i] = v
			continue
		}
		if place, ok := s.hot.place(v); ok {
			places[i] = place
			cached++
			continue
		}
		places[i] = beyond + uint32(len(p.far))
		p.far = append(p.far, v)
	}
	r.Cached += cached
	r.Local += len(set) - cached - (len(p.far) - asked)
}

// group is the number of vertices whose slots are read together: enough for their cache
// misses to overlap, few enough that they stay in the L1 cache.
const group = 64

// once places some vertices of a set, those that were seen before as they were then. In
// the table base marks a row that is local or cached, base + 1 + i the far row that was
// found as i.
func (s *Source) once(r *Rows, t *seen, places, set []uint32) {
	store, beyond, p := s.store, s.beyond(), &r.plan
	for i, v := range set {
		if t.dense && store.Reads(v) {
			places[i] = v
			if t.local(v) {
				r.Local++
			}
			continue
		}
		slot := t.at(v)
		seen := uint32(*slot >> 32)
		if seen > t.base {
			places[i] = beyond + seen - t.base - 1
			continue
		}
		count := &r.Local
		if store.Reads(v) {
			places[i] = v
		} else if place, ok := s.hot.place(v); ok {
			places[i], count = place, &r.Cached
		} else {
			places[i] = beyond + uint32(len(p.far))
			p.far = append(p.far, v)
			t.use(slot, v, t.base+uint32(len(p.far)))
			continue
		}
		if seen < t.base {
			t.use(slot, v, t.base)
			*count++
		}
	}
}

// order sets the questions, round by round, and the places of arriving rows.
func (s *Source) order(r *Rows) {
	p := &r.plan
	n := len(p.far)
	p.owners, p.rows = resize(p.owners, n), resize(p.rows, n)
	p.body = resize(p.body, 4*n)
	p.counts = resize(p.counts, len(s.work.Nodes))
	first, shard := 0, 0
	for round, end := range p.ends {
		clear(p.counts)
		for i := first; i < end; i++ {
			v := p.far[i]
			if v < s.layout.Firsts[shard] || v >= s.layout.Firsts[shard+1] {
				shard = s.layout.Shard(v)
			}
			p.owners[i] = int32(s.layout.Owners[shard])
			p.counts[p.owners[i]]++
		}
		at := first
		for node, count := range p.counts {
			if count > 0 {
				s.add(r, round, node, at, count)
			}
			p.counts[node] = at
			at += count
		}
		for i := first; i < end; i++ {
			row := p.counts[p.owners[i]]
			p.counts[p.owners[i]]++
			p.rows[i] = uint32(row)
			binary.LittleEndian.PutUint32(p.body[4*row:], p.far[i])
		}
		first = end
	}
	beyond := s.beyond()
	for _, places := range r.Places {
		for i, place := range places {
			if place >= beyond {
				places[i] = beyond + p.rows[place-beyond]
			}
		}
	}
}

// borrow returns a table that nobody else uses, with room for so many vertices.
func (s *Source) borrow(vertices int) *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tables) == 0 {
		s.tables = append(s.tables, &seen{})
	}
	n := len(s.tables)
	t := s.tables[n-1]
	s.tables = s.tables[:n-1]
	t.reserve(vertices, int(s.store.Vertices()))
	return t
}

func (s *Source) giveBack(t *seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables = append(s.tables, t)
}

// resize returns a slice of n elements with any content after the old elements.
func resize[E any](s []E, n int) []E {
	return slices.Grow(s, max(0, n-len(s)))[:n]
}
