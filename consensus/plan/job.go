package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// What jobs may be at most. Their epochs are most of what a plan holds, and it goes
// to every node with every snapshot.
const (
	// MaxJobs bounds how many there are, those that have ended included: a job stays
	// until somebody removes it.
	MaxJobs = 64
	// MaxEpochs bounds the epochs of one job, MaxHistory those of all together, where
	// each model of a sweep has its own. When there is no room for more, the oldest jobs
	// that have ended keep only the best epoch of each model and its last.
	MaxEpochs  = 10_000
	MaxHistory = 50_000
	// MaxModels bounds the models of a sweep.
	MaxModels = 64
	// MaxKeepers is how many nodes of a job keep checkpoints while it runs: the first of
	// them.
	MaxKeepers = 3
	// MaxRecipe bounds a recipe in bytes, MaxCommit the epochs of one command: one epoch
	// of the largest sweep fits.
	MaxRecipe = 64 << 10
	MaxCommit = 256
	// MaxSentence bounds what a job says in words, in bytes, MaxNotes how many notes it
	// has. MaxWhy bounds an epoch's Why, in bytes as JSON writes it: there are many.
	MaxSentence = 1 << 10
	MaxNotes    = 8
	MaxWhy      = 256
)

// JobState says where a job stands.
type JobState string

// A job is queued until a node is free for it, runs, and ends in one of three ways.
// What has failed or was stopped may be queued again.
const (
	Queued  JobState = "queued"
	Running JobState = "running"
	Done    JobState = "done"
	Failed  JobState = "failed"
	Stopped JobState = "stopped"
)

// A Job is a model that is trained, or was. What a State's jobs refer to is as
// immutable as the State.
type Job struct {
	ID string `json:"id"` // "j" and its Number: people type it
	// Number counts all jobs that there ever were. Those that wait go by it.
	Number uint64 `json:"number"`
	// Key is 8 hex digits, made by who asked for the job: it tells a repeated request
	// from a second one, and files of this job from those of another with its id.
	Key         string `json:"key"`
	Dataset     string `json:"dataset"` // its id
	DatasetName string `json:"dataset_name"`
	// Content is the dataset's Content: one of the same name and content may take its
	// place.
	Content string `json:"content,omitempty"`
	// Recipe is JSON, which only those who train look into.
	Recipe   string `json:"recipe"`
	Strategy string `json:"strategy"`
	Why      string `json:"why,omitempty"` // this strategy
	Seed     uint64 `json:"seed"`
	Epochs   int    `json:"epochs"` // to be trained, at most

	State JobState `json:"state"`
	// Stopping is the wish that the job ends, while the node that runs it has yet to
	// do so.
	Stopping bool   `json:"stopping,omitempty"`
	Error    string `json:"error,omitempty"` // why it failed, or was stopped by the mesh
	// Nodes are the ids of those that run the job, or ran it last.
	Nodes []string `json:"nodes,omitempty"`
	// Generation is that of the plan which gave the job to Nodes. Reports of an earlier
	// one are refused.
	Generation uint64 `json:"generation,omitempty"`
	// Owners is, for each shard of the dataset, who serves and computes it: the index of
	// one of Nodes. Each of them owns a shard. A job has it as soon as it has nodes, if
	// it is Shared, and else never.
	Owners []int `json:"owners,omitempty"`
	// Holders are, while it runs, for each shard those of Nodes that held a copy of it
	// beside its owner when they were given the job, ascending, and Weights how much each
	// of Nodes can do beside the others. Both are there if there is any copy.
	Holders [][]int  `json:"holders,omitempty"`
	Weights []uint64 `json:"weights,omitempty"`
	// Keepers are those who have what the job has learnt: the first few of Nodes, or
	// until there is an epoch in this generation those of the one before. Other nodes
	// that ran it may have nothing.
	Keepers []string `json:"keepers,omitempty"`
	History []Epoch  `json:"history,omitempty"` // epochs in rising order, and the models in each
	// Thinned says that epochs were taken out of History to make room.
	Thinned bool     `json:"thinned,omitempty"`
	Best    int      `json:"best,omitempty"`  // the epoch whose model is kept; 0: none yet
	Notes   []string `json:"notes,omitempty"` // sentences of who trained it

	// Bests are of a sweep: for each of its models, what Best is for a job of one. Best is
	// then that of BestModel, which is the best of them.
	Bests     []int `json:"bests,omitempty"`
	BestModel int   `json:"best_model,omitempty"`
	// Diverged are sentences, one for each model of a sweep, on how it ended where its
	// numbers were no longer finite; "" of all others, and none if there is no such model.
	Diverged []string `json:"diverged,omitempty"`
}

// An Epoch is what was reported of one epoch.
type Epoch struct {
	Epoch      int      `json:"epoch"`           // from 1
	Model      int      `json:"model,omitempty"` // of a sweep, from 0
	Loss       float64  `json:"loss"`
	Seconds    float64  `json:"seconds"`
	Phases     Phases   `json:"phases,omitzero"`
	Rows       Rows     `json:"rows,omitzero"`
	Requests   Requests `json:"requests,omitzero"`
	Bytes      Bytes    `json:"bytes,omitzero"`
	Eval       *Eval    `json:"eval,omitempty"` // nil: it was not evaluated
	Generation uint64   `json:"generation"`     // of the run that reported it
	Weights    string   `json:"weights"`        // hex SHA-256
	// Strategy is the one that was used, Why what was told of the choice where there was
	// one, Slots how many slots a step had where models travel, Behind by how many updates
	// weights were older at most than those of their steps, where p3 had several under way.
	Strategy string `json:"strategy,omitempty"`
	Why      string `json:"why,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Behind   int    `json:"behind,omitempty"`
	// Predicted is what a pipeline's nodes thought that it would take; nil: they did not.
	Predicted *Prediction `json:"predicted,omitempty"`

	// Super is the super-epoch of grappa that it is of, from 1, and Seen the share of all
	// edges that the groups of their targets have seen so far.
	Super int     `json:"super_epoch,omitempty"`
	Seen  float64 `json:"edges_seen,omitempty"`
}

// A Prediction is what an epoch of a pipeline takes on average, as its nodes thought when
// they met, in seconds, with a history's share of that. It is told of epochs that have no slots, nor
// anything else of strategies that are none, which keeps them short.
type Prediction struct {
	Stages  int     `json:"stages"`
	Ways    int     `json:"ways"`
	Seconds float64 `json:"seconds"`
	History float64 `json:"history,omitempty"`
}

// checkPrediction wants numbers that a program may show and add up.
func (e Epoch) checkPrediction() error {
	p := e.Predicted
	if p == nil {
		return nil
	}
	if e.Model != 0 || e.Slots != 0 || e.Behind != 0 || e.Super != 0 || e.Seen != 0 {
		return fmt.Errorf("%w: epoch %d is told of as a pipeline's, and as another's", ErrInvalid, e.Epoch)
	}
	if !finite(p.Seconds) || !finite(p.History) {
		return fmt.Errorf("%w: %v s of an epoch are predicted, and %v s of a history", ErrInvalid, p.Seconds, p.History)
	}
	if p.Stages < 1 || p.Ways < 1 || max(p.Stages, p.Ways) > maxSlots {
		return fmt.Errorf("%w: %d stages of %d ways are predicted", ErrInvalid, p.Stages, p.Ways)
	}
	return nil
}

// Phases is where the time of an epoch went, in seconds.
type Phases struct {
	Sample  float64 `json:"sample,omitempty"`
	Gather  float64 `json:"gather,omitempty"`
	Compute float64 `json:"compute,omitempty"`
	Reduce  float64 `json:"reduce,omitempty"`
	Wait    float64 `json:"wait,omitempty"`
}

// Rows counts input rows by where they were.
type Rows struct {
	Local  uint64 `json:"local,omitempty"`
	Remote uint64 `json:"remote,omitempty"`
}

// Requests counts what was asked of other nodes.
type Requests struct {
	Feature  uint64 `json:"feature,omitempty"`
	Topology uint64 `json:"topology,omitempty"`
	// With these the payload is known of what a pipeline sends.
	Activation uint64 `json:"activation,omitempty"`
	Gradient   uint64 `json:"gradient,omitempty"`
}

// Bytes counts what all nodes together sent, by kind.
type Bytes struct {
	Feature    uint64 `json:"feature,omitempty"`
	Topology   uint64 `json:"topology,omitempty"`
	Model      uint64 `json:"model,omitempty"`
	Gradient   uint64 `json:"gradient,omitempty"`
	Activation uint64 `json:"activation,omitempty"`
	Shard      uint64 `json:"shard,omitempty"`
	Control    uint64 `json:"control,omitempty"`
}

// An Eval is the evaluation after an epoch. Accuracies are shares of 1; nil where a
// part has no vertices.
type Eval struct {
	Seconds float64  `json:"seconds"`
	Train   *float64 `json:"train,omitempty"`
	Val     *float64 `json:"val,omitempty"`
	Test    *float64 `json:"test,omitempty"`
	// Score is what the best epoch has most of; of two with the same, the one with
	// the lower Loss, on validation, is better. Without Val they mean nothing.
	Score float64 `json:"score"`
	Loss  float64 `json:"loss"`
	Bytes Bytes   `json:"bytes,omitzero"`
}

// jobID is what people call a job.
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

// JobOn finds the job that the plan gives to a node, the oldest if there are more.
func (s *State) JobOn(node string) (Job, bool) {
	var found Job
	for _, j := range s.Jobs {
		if j.State == Running && slices.Contains(j.Nodes, node) && (found.ID == "" || j.Number < found.Number) {
			found = j
		}
	}
	return found, found.ID != ""
}

// JobsOf lists the ids of jobs that wait for a dataset or work on it, the oldest
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

// single is the strategy in which one node does it all.
const single = "single"

// Shared says whether the job is run by all nodes that own a shard of its dataset,
// even if that is one; else one node runs it that holds every shard.
func (j Job) Shared() bool { return j.Strategy != single }

// Ended says whether nobody works on the job, nor will unless it is resumed.
func (j Job) Ended() bool { return j.State != Queued && j.State != Running }

// Models is how many models the job trains.
func (j Job) Models() int { return max(1, len(j.Bests)) }

// Last is the number of the last epoch that is known of, 0 before the first. It is known
// of all models that trained in it.
func (j Job) Last() int {
	if len(j.History) == 0 {
		return 0
	}
	return j.History[len(j.History)-1].Epoch
}

// EpochAt finds one epoch of a model by its number.
func (j Job) EpochAt(epoch, model int) (Epoch, bool) {
	at, ok := slices.BinarySearchFunc(j.History, Epoch{Epoch: epoch, Model: model}, Epoch.compare)
	if !ok {
		return Epoch{}, false
	}
	return j.History[at], true
}

// compare says which comes first in a History.
func (e Epoch) compare(o Epoch) int {
	return cmp.Or(cmp.Compare(e.Epoch, o.Epoch), cmp.Compare(e.Model, o.Model))
}

// Of is what is known of one model of a sweep.
func (j Job) Of(model int) []Epoch {
	var list []Epoch
	for _, e := range j.History {
		if e.Model == model {
			list = append(list, e)
		}
	}
	return list
}

// DatasetOf is what a job trains on: the dataset that it began with or, if that was
// removed, a ready one of the same name and content.
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

// JobsOn lists the jobs that a dataset is needed by, those included that have ended:
// without it they can neither go on nor predict.
func (s *State) JobsOn(dataset string) []Job {
	var list []Job
	for _, j := range s.JobsInOrder() {
		if d, err := s.DatasetOf(j); err == nil && d.ID == dataset {
			list = append(list, j)
		}
	}
	return list
}

// Better says whether e is a better epoch than the best before it. What was not
// judged on validation is never the best.
func (e Epoch) Better(best Epoch) bool {
	switch {
	case e.Eval == nil || e.Eval.Val == nil:
		return false
	case best.Eval == nil:
		return true
	}
	return cmp.Or(cmp.Compare(e.Eval.Score, best.Eval.Score), cmp.Compare(best.Eval.Loss, e.Eval.Loss)) > 0
}
