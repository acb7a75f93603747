package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// This file is the leader's part of operations on jobs.

func noJob(id string) string {
	return fmt.Sprintf("there is no job %s: `hopmesh train list` shows those there are", id)
}

// unknownPatience is how long a job that this node does not know of may hold up who asks
// for it.
const unknownPatience = 2 * time.Second

// job is a job of the plan. One that this node has not heard of may have been made a
// moment ago, on another: it reads what the leader knows before it says that there is none.
func (m *member) job(ctx context.Context, id string) (*plan.State, plan.Job, error) {
	s := m.plan.State()
	j, ok := s.Jobs[id]
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, unknownPatience)
		defer cancel()
		if err := m.order(ctx, opPlanIndex, none{}); err != nil {
			m.log.Debug("read what the leader knows", "job", id, "err", err)
		}
		s = m.plan.State()
		j, ok = s.Jobs[id]
	}
	if !ok {
		return s, j, api.NotFound("%s", noJob(id))
	}
	return s, j, nil
}

// createdJob says which job was made, and as of which index of the plan.
type createdJob struct {
	ID    string `json:"id"`
	Index uint64 `json:"index"`
}

// leaderCreateJob takes a job that the asked node has checked.
func (m *member) leaderCreateJob(ctx context.Context, c plan.CreateJob) (createdJob, error) {
	s, err := m.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return createdJob{}, mesh.Refuse(reasonNotFound, "the dataset was removed meanwhile")
	case errors.Is(err, plan.ErrJobsFull):
		return createdJob{}, mesh.Refuse(reasonConflict, "%s", noRoom(m.plan.State()))
	case errors.Is(err, plan.ErrUndefined), errors.Is(err, plan.ErrJobTaken), errors.Is(err, plan.ErrEpochsFull):
		return createdJob{}, mesh.Refuse(reasonConflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return createdJob{}, mesh.Refuse(reasonInvalid, "%v", err)
	case err != nil:
		return createdJob{}, err
	}
	m.plan.Hint()
	for id, j := range s.Jobs {
		if j.Key == c.Key {
			m.log.Info("a job was created", "job", id, "dataset", j.DatasetName, "strategy", j.Strategy)
			return createdJob{ID: id, Index: s.Index}, nil
		}
	}
	return createdJob{}, mesh.Refuse(reasonConflict, "the job was removed at once")
}

// noRoom names the job that is likeliest to be of no more use.
func noRoom(s *plan.State) string {
	text := fmt.Sprintf("there are %d jobs, as many as the mesh keeps: ", len(s.Jobs))
	oldest := ""
	for _, j := range s.JobsInOrder() {
		if j.State == plan.Done {
			return text + fmt.Sprintf("remove one that is of no more use, such as the oldest that is done, with `hopmesh train remove %s`", j.ID)
		}
		if oldest == "" && j.Ended() {
			oldest = j.ID
		}
	}
	if oldest != "" {
		return text + fmt.Sprintf("remove one that is of no more use, such as the oldest that has ended, with `hopmesh train remove %s`", oldest)
	}
	return text + "wait until one has ended, or stop one with `hopmesh train stop`, and remove it with `hopmesh train remove`"
}

func (m *member) leaderStopJob(ctx context.Context, id string) (uint64, error) {
	s, err := m.plan.Apply(ctx, plan.StopJob{ID: id})
	if errors.Is(err, plan.ErrNoJob) {
		return 0, mesh.Refuse(reasonNotFound, "%s", noJob(id))
	}
	if err != nil {
		return 0, err
	}
	return s.Index, nil
}

func (m *member) leaderResumeJob(ctx context.Context, c plan.ResumeJob) (uint64, error) {
	id := c.ID
	j := m.plan.State().Jobs[id]
	switch {
	case j.State == plan.Running && !j.Stopping:
		return 0, mesh.Refuse(reasonConflict, "job %s is running already", id)
	case j.State == plan.Queued:
		return 0, mesh.Refuse(reasonConflict, "job %s is in the queue already", id)
	}
	s, err := m.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoJob):
		return 0, mesh.Refuse(reasonNotFound, "%s", noJob(id))
	case errors.Is(err, plan.ErrJobState) && j.State == plan.Done:
		return 0, mesh.Refuse(reasonConflict, "job %s is done, so there is nothing to resume", id)
	case errors.Is(err, plan.ErrJobState):
		return 0, mesh.Refuse(reasonConflict, "job %s is just being stopped: resume it when it has stopped", id)
	case errors.Is(err, plan.ErrNoDataset), errors.Is(err, plan.ErrUndefined), errors.Is(err, plan.ErrOtherContent):
		return 0, mesh.Refuse(reasonConflict, "%s", withoutDataset(j, err))
	case errors.Is(err, plan.ErrEpochsFull):
		return 0, mesh.Refuse(reasonConflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid):
		return 0, mesh.Refuse(reasonInvalid, "%v", err)
	case err != nil:
		return 0, err
	}
	m.plan.Hint()
	return s.Index, nil
}

// withoutDataset says what a job lacks that State.DatasetOf finds no dataset for.
func withoutDataset(j plan.Job, err error) string {
	name := j.DatasetName
	switch {
	case errors.Is(err, plan.ErrUndefined):
		return fmt.Sprintf("dataset %s, which job %s needs, is still being imported: wait until it is ready", name, j.ID)
	case errors.Is(err, plan.ErrOtherContent):
		return fmt.Sprintf("there is a dataset %s, but its content is another than that of the one on which job %s was trained: import that one again, with the same options and under this name", name, j.ID)
	}
	return fmt.Sprintf("the dataset %s, on which job %s was trained, is no longer in the mesh: import it again, with the same options and under the same name", name, j.ID)
}

func (m *member) leaderRemoveJob(ctx context.Context, id string) (uint64, error) {
	j := m.plan.State().Jobs[id]
	s, err := m.plan.Apply(ctx, plan.RemoveJob{ID: id})
	switch {
	case errors.Is(err, plan.ErrNoJob):
		return 0, mesh.Refuse(reasonNotFound, "%s", noJob(id))
	case errors.Is(err, plan.ErrJobState):
		return 0, mesh.Refuse(reasonConflict, "job %s is %s: stop it first, with `hopmesh train stop %s`", id, j.State, id)
	case err != nil:
		return 0, err
	}
	m.log.Info("removed a job on request", "job", id)
	return s.Index, nil
}

// leaderCommit takes a node's word on epochs of a job that it runs.
func (m *member) leaderCommit(ctx context.Context, c plan.CommitEpochs, from string) (uint64, error) {
	c.Node = from
	return m.reported(m.plan.Apply(ctx, c))
}

// leaderFinish takes a node's word that a job has ended there.
func (m *member) leaderFinish(ctx context.Context, c plan.FinishJob, from string) (uint64, error) {
	c.Node = from
	defer m.plan.Hint() // another job may begin
	return m.reported(m.plan.Apply(ctx, c))
}

func (m *member) reported(s *plan.State, err error) (uint64, error) {
	switch {
	case errors.Is(err, plan.ErrNoJob), errors.Is(err, plan.ErrStaleReport), errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return 0, mesh.Refuse(reasonConflict, "%v", err)
	case err != nil:
		return 0, err
	}
	return s.Index, nil
}

// answers says whether gossip sees a node alive.
func (m *member) answers(id string) bool {
	alive, _ := m.health(id)
	return alive
}
