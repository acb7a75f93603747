package plan

// thinnest is how many epochs a job that is thinned keeps at most: of each model the best
// and the last.
func (j Job) thinnest() int { return 2 * j.Models() }

// reserves is what the job may come to take of MaxHistory, however much it has now:
// of one that has ended all but a few epochs can be taken.
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

// thin takes epochs out of jobs that have ended, the oldest first, until those that
// are known fit. They do in the end, since no more is reserved than there may be.
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
	var kept []Epoch // those of the state before are not written to
	for _, e := range j.History {
		if e.Epoch == best[e.Model] || e.Epoch == last[e.Model] {
			kept = append(kept, e)
		}
	}
	j.History, j.Thinned = kept, true
	return j
}
