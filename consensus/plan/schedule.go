package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan/schedule"
)

// ScheduleJob is what the first node of a job proposes for its epochs, from Entry.From on. It is
// refused once this generation has reported that epoch. Nodes that do not know it stop, so it is
// committed for jobs that are Scheduled only.
type ScheduleJob struct {
	ID         string `json:"id"`
	Node       string `json:"node"`
	Generation uint64 `json:"generation"` // the job's
	// Entry needs no Generation and no Work.
	Entry schedule.Entry `json:"entry"`
}

func (ScheduleJob) kind() Kind { return KindScheduleJob }

// KnowsSchedules reports whether each member is of a version that knows of schedules.
func (s *State) KnowsSchedules() bool {
	for _, m := range s.Members {
		if m.Knows < KindScheduleJob {
			return false
		}
	}
	return true
}

// Work returns a digest of the assignment of a running job: of its nodes, and of what they own,
// hold and can do.
func (j Job) Work() string {
	b, err := json.Marshal([]any{j.Nodes, j.Owners, j.Holders, j.Weights})
	if err != nil {
		panic(fmt.Sprintf("plan: the digest of an assignment: %v", err)) // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func (c ScheduleJob) apply(s *State, _ uint64) error {
	j, err := s.reported(c.ID, c.Node, c.Generation)
	if err != nil {
		return err
	}
	e := c.Entry
	e.Generation, e.Work = j.Generation, j.Work()
	switch done := j.doneIn(j.Generation); {
	case j.State != Running || j.Nodes[0] != c.Node:
		return fmt.Errorf("%s (%s): %w", j.ID, j.State, ErrStaleReport)
	case !j.Scheduled:
		return fmt.Errorf("%w: %s has no schedule, since some member does not know of any", ErrInvalid, j.ID)
	case e.From <= done && j.Schedule.Says(&e): // asked for again, since the answer was lost
		return nil
	case e.From <= done:
		return fmt.Errorf("%w: an entry of the schedule is from epoch %d on, and epoch %d is done", ErrInvalid, e.From, done)
	}
	if err := j.schedule(e); err != nil {
		return err
	}
	s.Jobs[j.ID] = j
	return nil
}

// doneIn returns the last epoch that a generation has reported, or 0.
func (j Job) doneIn(generation uint64) int {
	if n := len(j.History); n > 0 && j.History[n-1].Generation == generation {
		return j.History[n-1].Epoch
	}
	return 0
}

// begin adds the entry of an assignment, unless the schedule has one for its nodes already.
func (j *Job) begin(e *schedule.Entry) error {
	if e == nil {
		return nil
	}
	first := *e
	first.From, first.Generation = min(j.Last()+1, j.Epochs), j.Generation
	if _, known := j.Schedule.At(first.From, j.Work(), first.Rate); known {
		return nil
	}
	return j.schedule(first)
}

// schedule adds an entry for the nodes that have the job.
func (j *Job) schedule(e schedule.Entry) error {
	e.Work, e.Part = j.Work(), slices.Clone(e.Part)
	if err := checkEntry(e); err != nil {
		return err
	}
	with, err := j.Schedule.With(e, j.Epochs)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, j.ID, err)
	}
	j.Schedule = with
	return nil
}

func checkEntry(e schedule.Entry) error {
	return cmp.Or(checkText("strategy", e.Strategy), checkWhy(e.Why), checkNumber("generation", e.Generation))
}

// checkSchedule returns an error if no sequence of commands leads to this schedule.
func (j Job) checkSchedule() error {
	if err := j.Schedule.Check(j.Epochs); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, e := range j.Schedule {
		if err := checkEntry(e); err != nil {
			return err
		}
	}
	return nil
}
