package plan

// thinnest is how many epochs a job keeps that is thinned: its best and its last.
const thinnest = 2

// reserves is what the job may come to take of MaxHistory, however much it has now:
// of one that has ended all but a few epochs can be taken.
func (j Job) reserves() int {
	if j.Ended() {
		return min(len(j.History), thinnest)
	}
	return j.Epochs
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
		if !j.Ended() || len(j.History) <= thinnest {
			continue
		}
		var kept []Epoch // those of the state before are not written to
		for _, e := range j.History {
			if e.Epoch == j.Best || e.Epoch == j.Last() {
				kept = append(kept, e)
			}
		}
		j.History, j.Thinned = kept, true
		s.Jobs[j.ID] = j
	}
}
