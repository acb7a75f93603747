package plan

import (
	"cmp"
	"fmt"
)

// checkJobs returns an error if no sequence of commands leads to these jobs.
func (s *State) checkJobs() error {
	if len(s.Jobs) > MaxJobs || max(s.history(), s.reserved()) > MaxHistory || s.JobsMade > maxNumber {
		return fmt.Errorf("%w: %d jobs with %d epochs", ErrInvalid, len(s.Jobs), max(s.history(), s.reserved()))
	}
	keys, busy := map[string]bool{}, map[string]string{}
	for id, j := range s.Jobs {
		if id != j.ID || j.ID != jobID(j.Number) || j.Number == 0 || j.Number > s.JobsMade || keys[j.Key] {
			return fmt.Errorf("%w: job %.40q, number %d of %d, under the id %.40q, or two of its key", ErrInvalid, j.ID, j.Number, s.JobsMade, id)
		}
		keys[j.Key] = true
		if err := cmp.Or(j.checkHead(), j.checkHistory(), s.checkWork(j), j.checkSchedule()); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		if j.State != Running {
			continue
		}
		for _, n := range j.Nodes {
			if other := busy[n]; other != "" {
				return fmt.Errorf("%w: %.40q runs %s and %s", ErrInvalid, n, other, id)
			}
			busy[n] = id
		}
	}
	return nil
}

// checkWork returns an error unless the state of a job and its nodes are consistent.
func (s *State) checkWork(j Job) error {
	switch j.State {
	case Queued, Running, Done, Failed, Stopped:
	default:
		return fmt.Errorf("%w: it is in the state %.40q", ErrInvalid, j.State)
	}
	began := j.State != Queued && j.State != Stopped // those may never have begun
	if j.Stopping && j.State != Running || began && len(j.Nodes) == 0 {
		return fmt.Errorf("%w: it is %s, on %d nodes", ErrInvalid, j.State, len(j.Nodes))
	}
	if (len(j.Nodes) > 0) != (j.Generation > 0) || len(j.History) > 0 && len(j.Nodes) == 0 || j.Generation > s.Generation {
		return fmt.Errorf("%w: it was given to %d nodes in generation %d of %d", ErrInvalid, len(j.Nodes), j.Generation, s.Generation)
	}
	if _, in := s.Datasets[j.Dataset]; !in && !j.Ended() {
		return fmt.Errorf("%w: its dataset %.40q is gone", ErrInvalid, j.Dataset)
	}
	if j.State == Running {
		if err := s.checkMembers(j.Nodes); err != nil {
			return err
		}
	}
	if len(j.Nodes) > 0 {
		if err := s.checkShares(j); err != nil {
			return err
		}
	} else if len(j.Owners) > 0 {
		return fmt.Errorf("%w: it is divided among nobody", ErrInvalid)
	}
	if len(j.Keepers) > min(len(j.History), 1)*MaxKeepers {
		return fmt.Errorf("%w: %d nodes keep what it has learnt in %d epochs", ErrInvalid, len(j.Keepers), len(j.History))
	}
	return cmp.Or(j.checkMeans(), checkSentence("error", j.Error), checkNotes(j.Notes), checkDiverged(j.Diverged, len(j.Bests)))
}

// checkShares returns an error unless a job's division among its nodes is valid. While
// it runs its dataset does not change.
func (s *State) checkShares(j Job) error {
	shards := min(len(j.Owners), MaxShards)
	if j.State == Running {
		shards = len(s.Datasets[j.Dataset].Shards)
	}
	return j.checkShares(j.Nodes, j.Owners, shards)
}

func (j Job) checkHistory() error {
	if len(j.Bests) == 1 || len(j.Bests) > MaxModels || j.BestModel < 0 || j.BestModel >= j.Models() {
		return fmt.Errorf("%w: model %d is the best of a sweep of %d", ErrInvalid, j.BestModel, len(j.Bests))
	}
	last := Epoch{}
	for _, e := range j.History {
		if compareEpochs(e, last) <= 0 {
			return fmt.Errorf("%w: epoch %d after %d, of models %d and %d", ErrInvalid, e.Epoch, last.Epoch, e.Model, last.Model)
		}
		if err := checkEpoch(&e, j); err != nil {
			return err
		}
		last = e
	}
	return j.checkBest(len(j.Bests))
}
