package plan

import (
	"cmp"
	"fmt"
	"slices"
)

func (c CreateJob) apply(s *State, _ uint64) error {
	d, ok := s.Datasets[c.Dataset]
	if !ok {
		return fmt.Errorf("%.40q: %w", c.Dataset, ErrNoDataset)
	}
	if d.Stage != Ready {
		return fmt.Errorf("%s (%s): %w", d.Name, d.Stage, ErrUndefined)
	}
	j := Job{
		Key: c.Key, Dataset: d.ID, DatasetName: d.Name, Content: d.Content(), Recipe: c.Recipe, Strategy: c.Strategy, Why: c.Why,
		Seed: c.Seed, Epochs: c.Epochs, Computing: c.Computing, State: Queued,
	}
	if c.Models < 0 || c.Models == 1 || c.Models > MaxModels {
		return fmt.Errorf("%w: a sweep of %d models: there may be 2 to %d", ErrInvalid, c.Models, MaxModels)
	}
	if c.Models > 0 {
		j.Bests = make([]int, c.Models)
	}
	for _, old := range s.Jobs {
		if old.Key != c.Key {
			continue
		}
		if old.asked(j) {
			return nil
		}
		return fmt.Errorf("%.40q: %w", c.Key, ErrJobTaken)
	}
	j.Number = s.JobsMade + 1
	j.ID = jobID(j.Number)
	if err := j.checkHead(); err != nil {
		return err
	}
	if len(s.Jobs) >= MaxJobs {
		return ErrJobsFull
	}
	if s.reserved()+j.reserves() > MaxHistory {
		return ErrEpochsFull
	}
	s.JobsMade = j.Number
	s.Jobs[j.ID] = j
	return nil
}

// asked reports whether both jobs come from the same request.
func (j Job) asked(other Job) bool {
	return j.Key == other.Key && j.Dataset == other.Dataset && j.Recipe == other.Recipe && j.Strategy == other.Strategy &&
		j.Why == other.Why && j.Seed == other.Seed && j.Epochs == other.Epochs && len(j.Bests) == len(other.Bests)
}

func (s *State) job(id string) (Job, error) {
	j, ok := s.Jobs[id]
	if !ok {
		return j, fmt.Errorf("%.40q: %w", id, ErrNoJob)
	}
	return j, nil
}

// reported returns the job that a node reports on. It returns an error unless the job
// is assigned to that node in this generation.
func (s *State) reported(id, node string, generation uint64) (Job, error) {
	j, err := s.job(id)
	if err != nil {
		return j, err
	}
	if j.Generation != generation || !slices.Contains(j.Nodes, node) {
		return j, fmt.Errorf("%s: %w", j.ID, ErrStaleReport)
	}
	return j, nil
}

func (c CommitEpochs) apply(s *State, _ uint64) error {
	j, err := s.reported(c.ID, c.Node, c.Generation)
	if err != nil {
		return err
	}
	if j.State != Running {
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrStaleReport)
	}
	if len(c.Epochs) > MaxCommit {
		return fmt.Errorf("%w: %d epochs at once", ErrInvalid, len(c.Epochs))
	}
	var fresh []Epoch
	last := Epoch{Epoch: j.Last(), Model: MaxModels}
	for _, e := range c.Epochs {
		e.Generation = j.Generation
		if e.Epoch <= j.Last() {
			continue
		}
		if compareEpochs(e, last) <= 0 {
			return fmt.Errorf("%w: epoch %d after %d, of models %d and %d", ErrInvalid, e.Epoch, last.Epoch, e.Model, last.Model)
		}
		if err := checkEpoch(&e, j); err != nil {
			return err
		}
		last = e
		fresh = append(fresh, e)
	}
	if len(fresh) == 0 {
		return nil
	}
	j.Keepers = slices.Clone(j.Nodes[:min(len(j.Nodes), MaxKeepers)])
	j.History = slices.Concat(j.History, fresh) // a new slice: the previous state is not modified
	j.judge(fresh)
	s.Jobs[j.ID] = j
	s.thin()
	return nil
}

// judge updates the best epochs from those that have just arrived.
func (j *Job) judge(fresh []Epoch) {
	bests := make([]Epoch, j.Models()) // by model
	bests[j.BestModel], _ = j.EpochAt(j.Best, j.BestModel)
	for model, epoch := range j.Bests {
		bests[model], _ = j.EpochAt(epoch, model)
	}
	for _, e := range fresh {
		if e.Better(bests[e.Model]) {
			bests[e.Model] = e
		}
	}
	j.Bests = slices.Clone(j.Bests)
	for model := range j.Bests {
		j.Bests[model] = bests[model].Epoch
	}
	for model, e := range bests {
		if e.Better(bests[j.BestModel]) {
			j.BestModel = model
		}
	}
	j.Best = bests[j.BestModel].Epoch
}

func (c FinishJob) apply(s *State, _ uint64) error {
	j, err := s.reported(c.ID, c.Node, c.Generation)
	if err != nil {
		return err
	}
	switch c.State {
	case Done, Failed, Stopped:
	default:
		return fmt.Errorf("%w: a job can't end as %.40q", ErrInvalid, c.State)
	}
	if err := cmp.Or(checkSentence("error", c.Error), checkNotes(c.Notes), checkDiverged(c.Diverged, len(j.Bests))); err != nil {
		return err
	}
	if j.State == c.State {
		return nil
	}
	if j.State != Running {
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrStaleReport)
	}
	if c.Best != 0 {
		models := len(j.Bests)
		j.Best, j.BestModel, j.Bests = c.Best, c.BestModel, slices.Clone(c.Bests)
		if err := j.checkBest(models); err != nil {
			return err
		}
	}
	j.State, j.Stopping, j.Error = c.State, false, c.Error
	j.Holders, j.Weights = nil, nil
	if len(c.Notes) > 0 {
		j.Notes = slices.Clone(c.Notes)
	}
	if len(c.Diverged) > 0 {
		j.Diverged = slices.Clone(c.Diverged)
	}
	s.Jobs[j.ID] = j
	return nil
}

func (c StopJob) apply(s *State, _ uint64) error {
	j, err := s.job(c.ID)
	switch {
	case err != nil:
		return err
	case j.State == Queued:
		j.State = Stopped
	case j.State == Running:
		j.Stopping = true
	}
	s.Jobs[j.ID] = j
	return nil
}

func (c ResumeJob) apply(s *State, _ uint64) error {
	j, err := s.job(c.ID)
	switch {
	case err != nil:
		return err
	case j.State == Done, j.Stopping:
		return fmt.Errorf("%s: %w", j.ID, ErrJobState)
	case !j.Ended():
		return nil
	}
	d, err := s.DatasetOf(j)
	if err != nil {
		return err
	}
	if c.Recipe != "" {
		j.Recipe = c.Recipe
		if err := j.checkHead(); err != nil {
			return err
		}
	}
	reserved := s.reserved() - j.reserves()
	j.State, j.Error, j.Dataset, j.DatasetName = Queued, "", d.ID, d.Name
	if reserved+j.reserves() > MaxHistory {
		return ErrEpochsFull
	}
	s.Jobs[j.ID] = j
	return nil
}

func (c SetComputing) apply(s *State, _ uint64) error {
	j, err := s.job(c.ID)
	switch {
	case err != nil:
		return err
	case c.To < 1 || c.To > maxComputing:
		return fmt.Errorf("%w: %s is to compute by number %d", ErrInvalid, j.ID, c.To)
	case j.State != Queued || max(j.Computing, 1) != max(c.From, 1):
		return fmt.Errorf("%s (%s, by number %d): %w", j.ID, j.State, max(j.Computing, 1), ErrJobState)
	}
	j.Computing = c.To
	s.Jobs[j.ID] = j
	return nil
}

func (c RemoveJob) apply(s *State, _ uint64) error {
	j, err := s.job(c.ID)
	if err != nil {
		return err
	}
	if !j.Ended() {
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrJobState)
	}
	delete(s.Jobs, j.ID)
	return nil
}
