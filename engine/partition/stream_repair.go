package partition

// streamShedPasses is how often repair tries moves to parts with room in all constraints.
const streamShedPasses = 2

// streamRepair is the state of repair.
type streamRepair struct {
	s     *streamer
	count []uint32 // by part: vertices
	heavy []bool   // by part: exceeds a limit
	wrong int      // parts that are heavy or have no vertices
	goal  float64  // for level: the target between an even share and the limit
}

// repair ensures that no part is too heavy and none is empty. It reads the graph again
// only if one is.
//
// Vertices leave the parts that are too heavy for those that have room. If no part has
// room in all constraints at once, parts are levelled first: those close to a limit give
// to those that are not, in one constraint or the other, in the end down to an even
// share. That increases the cut, but balance is guaranteed.
func (s *streamer) repair() error {
	r := streamRepair{s: s, count: make([]uint32, s.k), heavy: make([]bool, s.k)}
	for _, p := range s.label {
		r.count[p]++
	}
	for part := range s.k {
		r.heavy[part] = s.heavy(uint16(part))
		r.wrong += r.isWrong(part)
	}
	for i := 0; i < streamRepairPasses && r.wrong > 0; i++ {
		r.goal = max(0, 0.5-0.1*float64(max(0, i-streamShedPasses)))
		if err := s.pass(s.count, func(v uint32, weights []uint32, _ int, choice *streamChoice) {
			if r.wrong > 0 {
				r.place(v, weights, choice, i < streamShedPasses)
			}
		}); err != nil {
			return err
		}
		if s.moved == 0 && r.goal == 0 {
			break // no single move helps
		}
	}
	return nil
}

func (r *streamRepair) isWrong(part int) int {
	if r.heavy[part] || r.count[part] == 0 {
		return 1
	}
	return 0
}

// place moves a vertex if that helps, and updates the number of wrong parts.
func (r *streamRepair) place(v uint32, weights []uint32, choice *streamChoice, gently bool) {
	s, from := r.s, r.s.label[v]
	if r.count[from] == 1 {
		return
	}
	switch {
	case !gently:
		r.level(v, weights)
	case r.heavy[from]:
		s.shed(v, weights, choice)
	default:
		r.found(v, weights)
	}
	to := s.label[v]
	if to == from {
		return
	}
	r.wrong -= r.isWrong(int(from)) + r.isWrong(int(to))
	r.count[from]--
	r.count[to]++
	r.heavy[from], r.heavy[to] = s.heavy(from), s.heavy(to)
	r.wrong += r.isWrong(int(from)) + r.isWrong(int(to))
}

// found moves a vertex to an empty part.
func (r *streamRepair) found(v uint32, weights []uint32) {
	for part, count := range r.count {
		if count == 0 && r.s.fits(uint16(part), weights) {
			r.s.move(v, uint16(part), weights)
			return
		}
	}
}

// level moves a vertex to the part where that most reduces the sum of squared weights
// above the goal.
func (r *streamRepair) level(v uint32, weights []uint32) {
	s, from := r.s, int(r.s.label[v])
	leaves := 0.0
	for c, w := range weights {
		load := s.loads[from*s.c+c]
		leaves += r.beyond(c, load) - r.beyond(c, load-uint64(w))
	}
	if leaves <= 0 {
		return
	}
	best, least := from, leaves*(1-1e-9) // so that rounding doesn't move it back and forth
	for part := range s.k {
		if part == from {
			continue
		}
		comes := 0.0
		for c, w := range weights {
			load := s.loads[part*s.c+c]
			comes += r.beyond(c, load+uint64(w)) - r.beyond(c, load)
		}
		if comes < least {
			best, least = part, comes
		}
	}
	if best != from {
		s.move(v, uint16(best), weights)
	}
}

func (r *streamRepair) beyond(c int, load uint64) float64 {
	if r.s.limit[c] == 0 {
		return 0
	}
	limit, even := float64(r.s.limit[c]), float64(r.s.total[c])/float64(r.s.k)
	x := max(0, (float64(load)-even-r.goal*(limit-even))/limit)
	return x * x
}
