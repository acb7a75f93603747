package partition

// open runs the first pass: a vertex joins the cluster that most of its neighbours have
// joined before, or opens one while more are allowed. Other vertices wait for the next
// pass, when their neighbours will have labels.
//
// A cluster may be as heavy as a part: a larger one would have to be cut, and a smaller
// one cuts what belongs together. Here counts of vertices and edges stand for the
// weights, whose totals are not known yet.
func (s *streamer) open() error {
	limit := streamClusterLimit(s.n, s.k)
	size, ends := make([]uint32, limit), make([]uint64, limit)
	mostSize := max(1, s.n/uint32(s.k))
	mostEnds := max(1, s.g.HalfEdges()/uint64(s.k))
	err := s.pass(func(v uint32, weights []uint32, degree int, choice *streamChoice) {
		for c, w := range weights {
			s.total[c] += uint64(w)
			s.largest[c] = max(s.largest[c], uint64(w))
		}
		to := uint16(streamNone)
		for _, l := range choice.label {
			if l != streamNone && size[l] < mostSize && ends[l]+uint64(degree) <= mostEnds {
				to = l
				break
			}
		}
		if to == streamNone {
			if degree == 0 || s.clusters == limit {
				return
			}
			to = uint16(s.clusters)
			s.clusters++
		}
		s.label[v] = to
		size[to]++
		ends[to] += uint64(degree)
		s.add(to, weights)
	})
	if err != nil {
		return err
	}
	s.setLimits()
	return nil
}

// gather runs the passes in which vertices move to the cluster of most of their
// neighbours, until hardly any does, and records the edges between clusters.
func (s *streamer) gather() error {
	for range streamClusterPasses {
		s.pairs.clear()
		if err := s.pass(func(v uint32, weights []uint32, _ int, choice *streamChoice) {
			s.follow(v, weights, choice)
			s.pairs.note(s.label[v], choice)
		}); err != nil {
			return err
		}
		if s.moved < s.n/streamSettled {
			break
		}
	}
	return nil
}

// follow moves a vertex to the label of most of its neighbours, if these outnumber those
// with its own label and there is room.
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
