package plan

// thinnest returns how many epochs a thinned job keeps at most: the best and the last
// of each model.
func (j Job) thinnest() int { return 2 * j.Models() }

// reserves returns how many epochs of MaxHistory the job may need, however many it has
// now. A job that has ended can be thinned to a few.
func (j Job) reserves() int {
	if j.Ended() {
		return min(len(j.History), j.thinnest())
	}
	return j.Epochs * j.Models()
}

func (s *State) reserved() int {
	n := 0
	for _, j := range s.Jobs {
		n += j.reserves()
	}
	return n
}

func (s *State) history() int {
	n := 0
	for _, j := range s.Jobs {
		n += len(j.History)
	}
	return n
}

// thin removes epochs from jobs that have ended, the oldest first, until the rest fit
// in MaxHistory. That always succeeds, because reservations never exceed MaxHistory.
func (s *State) thin() {
	for _, j := range s.JobsInOrder() {
		if s.history() <= MaxHistory {
			return
		}
		if j.Ended() && len(j.History) > j.thinnest() {
			s.Jobs[j.ID] = j.thinned()
		}
	}
}

func (j Job) thinned() Job {
	best, last := []int{j.Best}, make([]int, j.Models())
	if len(j.Bests) > 0 {
		best = j.Bests
	}
	for _, e := range j.History {
		last[e.Model] = e.Epoch
	}
	var kept []Epoch // a new slice: the previous state is not modified
	for _, e := range j.History {
		if e.Epoch == best[e.Model] || e.Epoch == last[e.Model] {
			kept = append(kept, e)
		}
	}
	j.History, j.Thinned = kept, true
	return j
}
