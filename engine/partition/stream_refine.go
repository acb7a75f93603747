package partition

// refine lets vertices follow their neighbours from part to part, assigns unlabelled
// vertices a part, and brings all parts below their limits.
func (s *streamer) refine() error {
	for i := range streamRefinePasses {
		waiting := false
		clear(s.between)
		if err := s.pass(s.count, func(v uint32, weights []uint32, degree int, choice *streamChoice) {
			own := s.label[v]
			switch {
			case own != streamNone && s.heavy(own):
				// At first, vertices with half of their neighbours in their part stay.
				if i > 0 || 2*int(choice.own) <= degree {
					s.shed(v, weights, choice)
				}
			default:
				s.follow(v, weights, choice)
			}
			if s.label[v] == streamNone {
				if degree == 0 && i == 0 { // it fits anywhere: the others choose first
					waiting = true
					return
				}
				s.move(v, s.roomy(v, weights), weights)
			}
			s.tie(v, choice)
		}); err != nil {
			return err
		}
		if s.moved < s.n/streamSettled && !waiting && !s.anyHeavy() {
			break
		}
	}
	return s.repair()
}

// heavy reports whether a part exceeds its limits.
func (s *streamer) heavy(part uint16) bool {
	load := s.loads[int(part)*s.c:]
	for c, limit := range s.limit {
		if load[c] > limit {
			return true
		}
	}
	return false
}

func (s *streamer) anyHeavy() bool {
	for part := range s.k {
		if s.heavy(uint16(part)) {
			return true
		}
	}
	return false
}

// shed moves a vertex to the part with room that has most of its neighbours, or else to
// any part with room.
func (s *streamer) shed(v uint32, weights []uint32, choice *streamChoice) {
	for _, l := range choice.label {
		if l != streamNone && s.fits(l, weights) {
			s.move(v, l, weights)
			return
		}
	}
	if l := s.roomy(v, weights); s.fits(l, weights) {
		s.move(v, l, weights)
	}
}

// roomy returns a part with room: the one with most room among a few drawn at random, or
// among all if those are full or parts are few.
func (s *streamer) roomy(v uint32, weights []uint32) uint16 {
	const few = 16
	best, least := uint16(0), -1.0
	try := func(part uint16) {
		load, most := s.loads[int(part)*s.c:], 0.0
		for c, w := range weights {
			if s.limit[c] > 0 {
				most = max(most, float64(load[c]+uint64(w))/float64(s.limit[c]))
			}
		}
		if least < 0 || most < least {
			best, least = part, most
		}
	}
	if s.k > few {
		random := randomMix(s.o.Seed, uint64(v))
		for range few {
			try(uint16(random >> 32 * uint64(s.k) >> 32))
			random = random*randomOdd + 1
		}
		if least <= 1 {
			return best
		}
	}
	for part := range s.k {
		try(uint16(part))
	}
	return best
}

// tie adds a vertex's edges between its own part and others.
func (s *streamer) tie(v uint32, choice *streamChoice) {
	row := s.between[int(s.label[v])*s.k:]
	for i, l := range choice.label {
		if l != streamNone {
			row[l] += uint64(choice.count[i])
		}
	}
}

// follow moves a vertex to the part of most of its neighbours, if these outnumber those
// in its own part and there is room.
func (s *streamer) follow(v uint32, weights []uint32, choice *streamChoice) {
	own := s.label[v]
	for i, l := range choice.label {
		if l == streamNone || own != streamNone && choice.count[i] <= choice.own {
			return
		}
		if s.fits(l, weights) {
			s.move(v, l, weights)
			return
		}
	}
}

func (s *streamer) fits(label uint16, weights []uint32) bool {
	load := s.loads[int(label)*s.c:]
	for c, w := range weights {
		if load[c]+uint64(w) > s.limit[c] {
			return false
		}
	}
	return true
}

func (s *streamer) move(v uint32, to uint16, weights []uint32) {
	if from := s.label[v]; from != streamNone {
		load := s.loads[int(from)*s.c:]
		for c, w := range weights {
			load[c] -= uint64(w)
		}
	}
	s.add(to, weights)
	s.label[v] = to
	s.moved++
}

func (s *streamer) add(to uint16, weights []uint32) {
	load := s.loads[int(to)*s.c:]
	for c, w := range weights {
		load[c] += uint64(w)
	}
}
