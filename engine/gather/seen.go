package gather

// bitsPer is how many vertices of the graph there may be for each of some sets, so that a
// bit for each takes no more than their slots in a table would.
const bitsPer = 128

// A seen is what is known of the vertices of a batch's sets that have been placed. Its
// memory follows from the sets: a slot for each vertex or, where a bit for each vertex of
// the graph takes less, these bits for local ones and slots for the others.
type seen struct {
	table
	bits  []uint64
	dense bool // bits are used
}

// reserve makes room for so many vertices of a graph, when it is empty.
func (s *seen) reserve(vertices, graph int) {
	if s.dense = graph/bitsPer <= vertices; !s.dense {
		s.table.reserve(vertices)
		return
	}
	s.table.reserve(0)
	if words := (graph + 63) / 64; len(s.bits) < words {
		s.bits = make([]uint64, words)
	}
}

// local adds a local vertex where there are bits, and reports whether it is new.
func (s *seen) local(v uint32) bool {
	word, bit := &s.bits[v/64], uint64(1)<<(v%64)
	old := *word
	*word = old | bit
	return old&bit == 0
}

// next drops all vertices, whose marks end at most this far above base.
func (s *seen) next(above int) {
	if s.dense {
		clear(s.bits)
	}
	s.table.next(above)
}
