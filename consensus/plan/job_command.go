package plan

import "github.com/hopmesh/hopmesh/consensus/plan/schedule"

type (
	// CreateJob queues a job. The plan assigns its id. Repeating it with the same key
	// changes nothing.
	CreateJob struct {
		Key      string `json:"key"`
		Dataset  string `json:"dataset"` // its id
		Recipe   string `json:"recipe"`
		Strategy string `json:"strategy"`
		Why      string `json:"why,omitempty"`
		Seed     uint64 `json:"seed"`
		Epochs   int    `json:"epochs"`
		Models   int    `json:"models,omitempty"` // of a sweep; 0: not a sweep
		// Computing is as in Job.
		Computing uint32 `json:"computing,omitempty"`
	}

	// AssignJob is the leader's decision on which nodes run a job, as computed by
	// NextJobs. If none of them is one of its Keepers, the job starts from scratch.
	AssignJob struct {
		ID string `json:"id"`
		// Nodes are the nodes that run it. If there are none, a running job is queued
		// again or, if it is stopping, stopped.
		Nodes []string `json:"nodes"`
		// Owners gives, for each shard of the dataset, the index in Nodes of the node
		// that serves and computes it. It is empty if the job is not Shared.
		Owners []int `json:"owners,omitempty"`
		// Generation, if not 0, is that of the running job that this replaces; the
		// command is refused if the job's has changed. It is 0 for a queued job.
		Generation uint64 `json:"generation,omitempty"`
		// Scheduled and Begins are set only if all members know of schedules. Begins is the
		// entry that the job begins with, if it needs no measurement; its epochs are the next
		// ones. An entry that the schedule has for these nodes holds instead.
		Scheduled bool            `json:"scheduled,omitempty"`
		Begins    *schedule.Entry `json:"begins,omitempty"`
	}

	// CommitEpochs is the report of a node that runs a job: epochs in ascending order,
	// each of all models of a sweep that trained in it. Epochs already known are
	// skipped.
	CommitEpochs struct {
		ID         string  `json:"id"`
		Node       string  `json:"node"`
		Generation uint64  `json:"generation"` // the job's
		Epochs     []Epoch `json:"epochs"`
	}

	// FinishJob is that node's report that the job has ended. Best, if not 0, is the
	// epoch of the best validation; in a sweep it is that of BestModel, and Bests has
	// one for each model. Repeating it changes nothing.
	FinishJob struct {
		ID         string   `json:"id"`
		Node       string   `json:"node"`
		Generation uint64   `json:"generation"`
		State      JobState `json:"state"` // done, failed or stopped
		Error      string   `json:"error,omitempty"`
		Best       int      `json:"best,omitempty"`
		BestModel  int      `json:"best_model,omitempty"`
		Bests      []int    `json:"bests,omitempty"`
		Notes      []string `json:"notes,omitempty"` // sentences, MaxNotes at most
		// Diverged is as in Job. If it is empty, the job's stays.
		Diverged []string `json:"diverged,omitempty"`
	}

	// StopJob requests that a job ends. A queued job is stopped at once; one that has
	// ended does not change.
	StopJob struct {
		ID string `json:"id"`
	}

	// ResumeJob queues a job again that failed or was stopped. A queued or running job
	// does not change. Recipe, if not "", replaces the job's.
	ResumeJob struct {
		ID     string `json:"id"`
		Recipe string `json:"recipe,omitempty"`
	}

	// SetComputing makes a queued job go on by another number of computing, once no node
	// computes by its own any more.
	SetComputing struct {
		ID   string `json:"id"`
		From uint32 `json:"from"` // its number until now
		To   uint32 `json:"to"`
	}

	// RemoveJob removes a job that has ended, with its results.
	RemoveJob struct {
		ID string `json:"id"`
	}
)

func (CreateJob) kind() Kind    { return KindCreateJob }
func (AssignJob) kind() Kind    { return KindAssignJob }
func (CommitEpochs) kind() Kind { return KindCommitEpochs }
func (FinishJob) kind() Kind    { return KindFinishJob }
func (StopJob) kind() Kind      { return KindStopJob }
func (ResumeJob) kind() Kind    { return KindResumeJob }
func (RemoveJob) kind() Kind    { return KindRemoveJob }
func (SetComputing) kind() Kind { return KindSetComputing }
