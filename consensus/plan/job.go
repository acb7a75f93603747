package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/epoch"
)

// Limits of jobs. Their epochs are most of a plan, which goes to every node with every
// snapshot.
const (
	// MaxJobs bounds the number of jobs, including those that have ended: a job stays
	// until somebody removes it.
	MaxJobs = 64
	// MaxEpochs bounds the epochs of one job, MaxHistory those of all jobs together,
	// where each model of a sweep counts its own. When MaxHistory is reached, the
	// oldest jobs that have ended keep only the best and the last epoch of each model.
	MaxEpochs  = 10_000
	MaxHistory = 50_000
	// MaxModels bounds the models of a sweep.
	MaxModels = 64
	// MaxKeepers is how many nodes of a job, from the first, keep checkpoints while it
	// runs.
	MaxKeepers = 3
	// MaxRecipe bounds a recipe in bytes, MaxCommit the epochs of one command. One
	// epoch of the largest sweep fits.
	MaxRecipe = 64 << 10
	MaxCommit = 256
	// MaxSentence bounds each text of a job in bytes, MaxNotes the number of its notes.
	// MaxWhy bounds an epoch's Why in bytes of JSON. It is smaller because every epoch
	// has one.
	MaxSentence = 1 << 10
	MaxNotes    = 8
	MaxWhy      = 256
	// maxComputing bounds a number of computing, as all version numbers are.
	maxComputing = 1 << 16
)

// JobState is the state of a job.
type JobState string

// A job is queued until a node is free for it, runs, and ends in one of three ways. A
// job that failed or was stopped may be queued again.
const (
	Queued  JobState = "queued"
	Running JobState = "running"
	Done    JobState = "done"
	Failed  JobState = "failed"
	Stopped JobState = "stopped"
)

// Job describes the training of a model, or of a sweep of models. Whatever a State's
// jobs refer to is as immutable as the State.
type Job struct {
	ID string `json:"id"` // "j" and its Number: people type it
	// Number counts all jobs ever created. Queued jobs are served in its order.
	Number uint64 `json:"number"`
	// Key is 8 hex digits chosen by whoever requested the job. It distinguishes a
	// repeated request from a second one, and this job's files from those of another
	// job with its id.
	Key         string `json:"key"`
	Dataset     string `json:"dataset"` // its id
	DatasetName string `json:"dataset_name"`
	// Content is the dataset's Content. A dataset of the same name and content may
	// replace it.
	Content string `json:"content,omitempty"`
	// Recipe is JSON that only the training code interprets.
	Recipe   string `json:"recipe"`
	Strategy string `json:"strategy"`
	Why      string `json:"why,omitempty"` // reason for this strategy
	Seed     uint64 `json:"seed"`
	Epochs   int    `json:"epochs"` // maximum number of epochs

	// Computing is the number that its nodes compute by: see Member.Computes. 0 counts as 1.
	Computing uint32 `json:"computing,omitempty"`

	State JobState `json:"state"`
	// Stopping is set when the job is to end but its nodes have not ended it yet.
	Stopping bool   `json:"stopping,omitempty"`
	Error    string `json:"error,omitempty"` // why it failed, or was stopped by the mesh
	// Nodes are the ids of the nodes that run the job, or ran it last.
	Nodes []string `json:"nodes,omitempty"`
	// Generation is that of the plan that assigned the job to Nodes. Reports of an
	// earlier generation are refused.
	Generation uint64 `json:"generation,omitempty"`
	// Owners gives, for each shard of the dataset, the index in Nodes of the node that
	// serves and computes it. Each node owns a shard. It is set if the job is Shared
	// and has nodes.
	Owners []int `json:"owners,omitempty"`
	// Holders lists, for each shard while the job runs, which of Nodes held a copy
	// besides the owner when the job was assigned, in ascending order. Weights is the
	// relative capacity of each of Nodes. Both are set if there is any copy.
	Holders [][]int  `json:"holders,omitempty"`
	Weights []uint64 `json:"weights,omitempty"`
	// Keepers are the nodes that have the job's checkpoints: the first few of Nodes, or
	// until there is an epoch in this generation, the keepers of the previous one.
	// Other nodes that ran the job may have none.
	Keepers []string `json:"keepers,omitempty"`
	History []Epoch  `json:"history,omitempty"` // ascending by epoch, then by model
	// Schedule is how the nodes share the epochs. Scheduled means that they take it from here:
	// all members knew how to when the job was assigned.
	Schedule  schedule.List `json:"schedule,omitempty"`
	Scheduled bool          `json:"scheduled,omitempty"`
	// Thinned reports whether epochs were removed from History to make room.
	Thinned bool     `json:"thinned,omitempty"`
	Best    int      `json:"best,omitempty"`  // the epoch whose model is kept; 0: none yet
	Notes   []string `json:"notes,omitempty"` // sentences of the nodes that trained it

	// Bests holds, for each model of a sweep, its best epoch, as Best does for a job of
	// one model. Best is then the best epoch of BestModel, the best of the models.
	Bests     []int `json:"bests,omitempty"`
	BestModel int   `json:"best_model,omitempty"`
	// Diverged holds, for each model of a sweep, a sentence on how it ended if its
	// numbers were no longer finite, else "". It is empty if no model diverged.
	Diverged []string `json:"diverged,omitempty"`
}

// Epoch is the record of one epoch, whose JSON is what plans store.
type Epoch = epoch.Record

// jobID returns the id that people use for a job.
func jobID(number uint64) string { return fmt.Sprintf("j%d", number) }

// JobsInOrder lists all jobs, the oldest first.
func (s *State) JobsInOrder() []Job {
	list := make([]Job, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b Job) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// JobOn returns the job assigned to a node, the oldest if there are several.
func (s *State) JobOn(node string) (Job, bool) {
	var found Job
	for _, j := range s.Jobs {
		if j.State == Running && slices.Contains(j.Nodes, node) && (found.ID == "" || j.Number < found.Number) {
			found = j
		}
	}
	return found, found.ID != ""
}

// JobsOf lists the ids of the jobs that wait for a dataset or run on it, the oldest
// first.
func (s *State) JobsOf(dataset string) []string {
	var ids []string
	for _, j := range s.JobsInOrder() {
		if j.Dataset == dataset && !j.Ended() {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// single is the strategy that trains on one node.
const single = "single"

// Shared reports whether the job is run by all nodes that own a shard of its dataset,
// even if that is one node. Otherwise one node that holds every shard runs it.
func (j Job) Shared() bool { return j.Strategy != single }

// Ended reports whether the job has ended. It may still be resumed.
func (j Job) Ended() bool { return j.State != Queued && j.State != Running }

// Models returns how many models the job trains.
func (j Job) Models() int { return max(1, len(j.Bests)) }

// Last returns the number of the last reported epoch, or 0. Every model that trained in
// that epoch has reported it.
func (j Job) Last() int {
	if len(j.History) == 0 {
		return 0
	}
	return j.History[len(j.History)-1].Epoch
}

// EpochAt returns one epoch of a model by its number.
func (j Job) EpochAt(epoch, model int) (Epoch, bool) {
	at, ok := slices.BinarySearchFunc(j.History, Epoch{Epoch: epoch, Model: model}, compareEpochs)
	if !ok {
		return Epoch{}, false
	}
	return j.History[at], true
}

// compareEpochs orders epochs as in a History.
func compareEpochs(a, b Epoch) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Model, b.Model))
}

// Of returns the epochs of one model of a sweep.
func (j Job) Of(model int) []Epoch {
	var list []Epoch
	for _, e := range j.History {
		if e.Model == model {
			list = append(list, e)
		}
	}
	return list
}

// DatasetOf returns the dataset that a job trains on: the one it began with or, if that
// was removed, a ready one of the same name and content.
func (s *State) DatasetOf(j Job) (Dataset, error) {
	if d, in := s.Datasets[j.Dataset]; in {
		return d, nil
	}
	d, in := s.DatasetByName(j.DatasetName)
	switch {
	case !in:
		return d, fmt.Errorf("%s: %w", j.DatasetName, ErrNoDataset)
	case d.Stage != Ready:
		return d, fmt.Errorf("%s (%s): %w", d.Name, d.Stage, ErrUndefined)
	case d.Content() != j.Content:
		return d, fmt.Errorf("%s: %w", d.Name, ErrOtherContent)
	}
	return d, nil
}

// JobsOn lists the jobs that need a dataset, including those that have ended: without
// it they can neither be resumed nor predict.
func (s *State) JobsOn(dataset string) []Job {
	var list []Job
	for _, j := range s.JobsInOrder() {
		if d, err := s.DatasetOf(j); err == nil && d.ID == dataset {
			list = append(list, j)
		}
	}
	return list
}
