package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
)

// Plan is the part of the replicated plan that jobs use.
type Plan interface {
	State() *plan.State
	Changed() <-chan struct{}
	IsLeader() bool
	Leader() string
	Apply(ctx context.Context, c plan.Command) (*plan.State, error)
	Hint()
}

var _ Plan = (*consensus.Consensus)(nil)

// Orders holds the orders about jobs. Each order is a field, which any node may call, and
// a method, which the leader runs. Commit, Finish, Schedule and Renew are for the runner's reports.
type Orders struct {
	leader  *lead.Orders
	plan    Plan
	apart   *lead.Apart
	answers func(id string) bool // reports whether gossip sees a node alive
	program Program              // that this node runs
	log     *slog.Logger

	create *lead.Order[plan.CreateJob, created]
	stop   *lead.Order[string, lead.Index]
	resume *lead.Order[plan.ResumeJob, lead.Index]
	remove *lead.Order[string, lead.Index]
	commit *lead.Order[plan.CommitEpochs, lead.Index]
	finish *lead.Order[plan.FinishJob, lead.Index]
	agree  *lead.Order[plan.ScheduleJob, lead.Index]
	renew  *lead.Order[renewal, bool]
}

var _ jobs.Leader = (*Orders)(nil)

// Register registers the orders about jobs.
func Register(l *lead.Orders, p Plan, a *lead.Apart, answers func(id string) bool, program Program, log *slog.Logger) *Orders {
	o := &Orders{leader: l, plan: p, apart: a, answers: answers, program: program, log: log}
	o.create = lead.Register(l, "create-job", lead.Repeatable, o.onCreate)
	o.stop = lead.Register(l, "stop-job", lead.Repeatable, o.onStop)
	o.resume = lead.Register(l, "resume-job", lead.Once, o.onResume)
	o.remove = lead.Register(l, "remove-job", lead.Once, o.onRemove)
	o.commit = lead.Register(l, "commit-epochs", lead.Repeatable, o.onCommit)
	o.finish = lead.Register(l, "finish-job", lead.Repeatable, o.onFinish)
	o.agree = lead.Register(l, "schedule-job", lead.Repeatable, o.onSchedule)
	o.renew = lead.Register(l, "renew-job", lead.Repeatable, o.onRenew)
	return o
}

// Commit records epochs that this node has trained.
func (o *Orders) Commit(ctx context.Context, c plan.CommitEpochs) error {
	_, err := o.commit.Do(ctx, c)
	return refused(err)
}

// Schedule proposes how the nodes of a job share its epochs.
func (o *Orders) Schedule(ctx context.Context, c plan.ScheduleJob) error {
	_, err := o.agree.Do(ctx, c)
	return refused(err)
}

// Finish records that a job has ended here.
func (o *Orders) Finish(ctx context.Context, c plan.FinishJob) error {
	_, err := o.finish.Do(ctx, c)
	return refused(err)
}

// Renew asks for another generation of a job.
func (o *Orders) Renew(ctx context.Context, r jobs.Renewal) (renewed bool, err error) {
	renewed, err = o.renew.Do(ctx, renewal{r, o.program})
	return renewed, refused(err)
}

// Index returns the index of the leader's plan.
func (o *Orders) Index(ctx context.Context) (uint64, error) { return o.leader.Index(ctx) }

// refused marks an error as final for the runner, so that it does not try again.
func refused(err error) error {
	if mesh.RefusalOf(err) == lead.Conflict {
		return fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	return err
}

// created is the id of a new job, and the index of the plan that has it.
type created struct {
	ID    string     `json:"id"`
	Index lead.Index `json:"index"`
}

// onCreate adds a job that the node which received the request has checked.
func (o *Orders) onCreate(ctx context.Context, _ string, c plan.CreateJob) (created, error) {
	if why := withoutSource(o.plan.State(), c); why != "" {
		return created{}, mesh.Refuse(lead.Conflict, "%s", why)
	}
	s, err := o.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoDataset):
		return created{}, mesh.Refuse(lead.NotFound, "the dataset was removed meanwhile")
	case errors.Is(err, plan.ErrJobsFull):
		return created{}, mesh.Refuse(lead.Conflict, "%s", noRoom(o.plan.State()))
	case errors.Is(err, plan.ErrUndefined), errors.Is(err, plan.ErrJobTaken), errors.Is(err, plan.ErrEpochsFull):
		return created{}, mesh.Refuse(lead.Conflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return created{}, mesh.Refuse(lead.Invalid, "%v", err)
	case err != nil:
		return created{}, err
	}
	o.plan.Hint()
	for id, j := range s.Jobs {
		if j.Key == c.Key {
			o.log.Info("a job was created", "job", id, "dataset", j.DatasetName, "strategy", j.Strategy)
			return created{ID: id, Index: lead.Index(s.Index)}, nil
		}
	}
	return created{}, mesh.Refuse(lead.Conflict, "the job was removed at once")
}

// withoutSource explains why a job could never begin with the model that its recipe names, or returns "". While
// that was read, its job may have been removed or resumed.
func withoutSource(s *plan.State, c plan.CreateJob) string {
	from := requests.Read(plan.Job{Recipe: c.Recipe}).From
	if from == nil {
		return ""
	}
	for _, j := range s.Jobs {
		if j.Key == c.Key {
			return "" // the order is repeated, and has had its effect
		}
	}
	switch j, in := s.Jobs[from.Job]; {
	case !in || j.Key != from.Key:
		return fmt.Sprintf("job %s was removed meanwhile, and its model with it: start from another job, or leave --from out", from.Job)
	case !j.Ended():
		return fmt.Sprintf("job %s was resumed meanwhile, so its model may still change: start from it when it has ended, or stop it with `hopmesh train stop %s`", from.Job, from.Job)
	}
	return ""
}

// noRoom returns the error text for a full plan. It names the job that is most likely
// useless.
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

func (o *Orders) onStop(ctx context.Context, _, id string) (lead.Index, error) {
	s, err := o.plan.Apply(ctx, plan.StopJob{ID: id})
	if errors.Is(err, plan.ErrNoJob) {
		return 0, mesh.Refuse(lead.NotFound, "%s", noJob(id))
	}
	if err != nil {
		return 0, err
	}
	return lead.Index(s.Index), nil
}

func (o *Orders) onResume(ctx context.Context, _ string, c plan.ResumeJob) (lead.Index, error) {
	id := c.ID
	j := o.plan.State().Jobs[id]
	switch {
	case j.State == plan.Running && !j.Stopping:
		return 0, mesh.Refuse(lead.Conflict, "job %s is running already", id)
	case j.State == plan.Queued:
		return 0, mesh.Refuse(lead.Conflict, "job %s is in the queue already", id)
	}
	if by := awaitedBy(o.plan.State(), j); by != "" {
		return 0, mesh.Refuse(lead.Conflict, "job %s begins with the model of job %s as it is: resume this one when that has done an epoch, or stop it first, with `hopmesh train stop %s`", by, id, by)
	}
	s, err := o.plan.Apply(ctx, c)
	switch {
	case errors.Is(err, plan.ErrNoJob):
		return 0, mesh.Refuse(lead.NotFound, "%s", noJob(id))
	case errors.Is(err, plan.ErrJobState) && j.State == plan.Done:
		return 0, mesh.Refuse(lead.Conflict, "job %s is done, so there is nothing to resume", id)
	case errors.Is(err, plan.ErrJobState):
		return 0, mesh.Refuse(lead.Conflict, "job %s is just being stopped: resume it when it has stopped", id)
	case errors.Is(err, plan.ErrNoDataset), errors.Is(err, plan.ErrUndefined), errors.Is(err, plan.ErrOtherContent):
		return 0, mesh.Refuse(lead.Conflict, "%s", withoutDataset(j, err))
	case errors.Is(err, plan.ErrEpochsFull):
		return 0, mesh.Refuse(lead.Conflict, "%v", err)
	case errors.Is(err, plan.ErrInvalid):
		return 0, mesh.Refuse(lead.Invalid, "%v", err)
	case err != nil:
		return 0, err
	}
	o.plan.Hint()
	return lead.Index(s.Index), nil
}

// withoutDataset returns the text for an error of State.DatasetOf.
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

// awaitedBy returns the first job that begins with the model of another and does not have it yet, or
// "".
func awaitedBy(s *plan.State, j plan.Job) string {
	for _, other := range s.JobsInOrder() {
		if j.Key != "" && requests.Awaits(other, j.Key) {
			return other.ID
		}
	}
	return ""
}

func (o *Orders) onRemove(ctx context.Context, _, id string) (lead.Index, error) {
	j := o.plan.State().Jobs[id]
	if by := awaitedBy(o.plan.State(), j); by != "" {
		return 0, mesh.Refuse(lead.Conflict, "job %s begins with the model of job %s: remove this one when that has done an epoch, or stop it first, with `hopmesh train stop %s`", by, id, by)
	}
	s, err := o.plan.Apply(ctx, plan.RemoveJob{ID: id})
	switch {
	case errors.Is(err, plan.ErrNoJob):
		return 0, mesh.Refuse(lead.NotFound, "%s", noJob(id))
	case errors.Is(err, plan.ErrJobState):
		return 0, mesh.Refuse(lead.Conflict, "job %s is %s: stop it first, with `hopmesh train stop %s`", id, j.State, id)
	case err != nil:
		return 0, err
	}
	o.log.Info("removed a job on request", "job", id)
	return lead.Index(s.Index), nil
}

// onCommit records epochs of a job that a node runs.
func (o *Orders) onCommit(ctx context.Context, from string, c plan.CommitEpochs) (lead.Index, error) {
	c.Node = from
	return reported(o.plan.Apply(ctx, c))
}

// onSchedule adds an entry to the schedule of a job that a node runs.
func (o *Orders) onSchedule(ctx context.Context, from string, c plan.ScheduleJob) (lead.Index, error) {
	c.Node = from
	return reported(o.plan.Apply(ctx, c))
}

// onFinish records that a job has ended on a node.
func (o *Orders) onFinish(ctx context.Context, from string, c plan.FinishJob) (lead.Index, error) {
	c.Node = from
	defer o.plan.Hint() // another job may begin
	return reported(o.plan.Apply(ctx, c))
}

func reported(s *plan.State, err error) (lead.Index, error) {
	switch {
	case errors.Is(err, plan.ErrNoJob), errors.Is(err, plan.ErrStaleReport), errors.Is(err, plan.ErrInvalid), errors.Is(err, plan.ErrOversized):
		return 0, mesh.Refuse(lead.Conflict, "%v", err)
	case err != nil:
		return 0, err
	}
	return lead.Index(s.Index), nil
}
