package api

import "encoding/json"

// TrainRequest asks for a model to be trained. What it leaves out is as is usual for
// the model.
type TrainRequest struct {
	Dataset     string   `json:"dataset"`
	Model       string   `json:"model,omitempty"` // "" is gcn
	Layers      *int     `json:"layers,omitempty"`
	Hidden      *int     `json:"hidden,omitempty"`
	Heads       *int     `json:"heads,omitempty"`
	Dropout     *float64 `json:"dropout,omitempty"`
	Norm        string   `json:"norm,omitempty"` // none or layer
	Residual    *bool    `json:"residual,omitempty"`
	Optimizer   string   `json:"optimizer,omitempty"` // adam, adamw or sgd
	Rate        *float64 `json:"lr,omitempty"`
	WeightDecay *float64 `json:"weight_decay,omitempty"`
	Epochs      *int     `json:"epochs,omitempty"`
	Batch       *int     `json:"batch,omitempty"`  // training vertices a step, over all nodes; 0: all
	Fanout      []int    `json:"fanout,omitempty"` // from the roots outwards; none: all neighbours
	Features    string   `json:"normalize_features,omitempty"`
	Patience    *int     `json:"patience,omitempty"`
	EvalEvery   *int     `json:"eval_every,omitempty"`
	Split       *int     `json:"split,omitempty"`
	Seed        *uint64  `json:"seed,omitempty"`
	Strategy    string   `json:"strategy,omitempty"` // "" is auto
	// Deterministic asks for the same bits on any number of nodes.
	Deterministic bool `json:"deterministic,omitempty"`
	// Set holds settings that have no field of their own, in the order in which they
	// are to be made.
	Set []Setting `json:"set,omitempty"`
	// Sweep asks for a model for each combination of values, all on the same batches. The
	// values of the last key vary fastest.
	Sweep []Sweep `json:"sweep,omitempty"`
}

// Setting is a key and its value, as `hopmesh train options` lists them.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// JobID names a job.
type JobID struct {
	ID string `json:"id"`
}

// Job is a model that is trained, or was.
type Job struct {
	ID          string     `json:"id"`
	State       string     `json:"state"` // queued, running, done, failed or stopped
	Error       string     `json:"error"` // a sentence without a full stop
	Dataset     string     `json:"dataset"`
	Model       string     `json:"model"`
	Strategy    string     `json:"strategy"`
	Why         string     `json:"why"` // this strategy
	Seed        uint64     `json:"seed"`
	Generation  uint64     `json:"generation"` // of the plan that gave it to its nodes
	Nodes       []string   `json:"nodes"`      // names of those that run it, or ran it last
	Devices     []string   `json:"devices"`    // what each of them computes on: see the notes where one has failed
	EpochsTotal int        `json:"epochs_total"`
	Epoch       int        `json:"epoch"` // under way, or the last
	Step        int        `json:"step"`  // of Steps, in that epoch
	Steps       int        `json:"steps"`
	Best        *JobBest   `json:"best"`    // null: nothing was evaluated yet
	History     []JobEpoch `json:"history"` // of a sweep: of its best model, with what each epoch took of all
	Models      []JobModel `json:"models"`  // of a sweep
	// Notes are sentences, without a full stop, on what decides the outcome.
	Notes []string `json:"notes"`
	// Recipe is all that decides what is learnt.
	Recipe json.RawMessage `json:"recipe"`
	// Problems are sentences, without a full stop, as in Status: what the job waits
	// for, which of its nodes does not answer or keeps no checkpoint.
	Problems []string `json:"problems"`
}

// JobBest is the epoch whose model is kept: the best on validation or, without
// validation vertices, the last. Accuracies are shares of 1, null of no vertices.
type JobBest struct {
	Epoch        int      `json:"epoch"`
	Model        *int     `json:"model,omitempty"` // a sweep's: which of its models it is of, from 0
	ValAccuracy  *float64 `json:"val_acc"`
	TestAccuracy *float64 `json:"test_acc"`
}

// JobModel is one model of a sweep.
type JobModel struct {
	Params  map[string]string `json:"params"` // that make it differ, as they were typed
	Best    *JobBest          `json:"best"`
	History []JobEpoch        `json:"history"`
	// Diverged is a sentence, without a full stop, on how it ended if its numbers were no
	// longer finite: the others go on without it.
	Diverged string `json:"diverged,omitempty"`
}

// JobEpoch is what was measured in one epoch. Seconds, phases, rows, requests and
// bytes are those of training alone.
type JobEpoch struct {
	Epoch         int         `json:"epoch"`           // from 1
	Model         int         `json:"model,omitempty"` // of a sweep, from 0
	Loss          float64     `json:"loss"`
	TrainAccuracy *float64    `json:"train_acc"` // null: not evaluated or no vertices, as the other two
	ValAccuracy   *float64    `json:"val_acc"`
	TestAccuracy  *float64    `json:"test_acc"`
	Seconds       float64     `json:"seconds"`
	Phases        JobPhases   `json:"phases"`
	Rows          JobRows     `json:"rows"`
	Requests      JobRequests `json:"requests"`
	Bytes         JobBytes    `json:"bytes"`
	Eval          *JobEval    `json:"eval"` // null: not evaluated
	Generation    uint64      `json:"generation"`
	Weights       string      `json:"weights_sha256"`
	// Strategy is the one that was used, Why what was told of the choice where there was
	// one, Slots how many slots a step had where models travel, Behind by how many updates
	// weights were older at most than those of their steps, where p3 had several under way.
	Strategy string `json:"strategy,omitempty"`
	Why      string `json:"why,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Behind   int    `json:"behind,omitempty"`
	// Predicted is what a pipeline's nodes thought that it would take; null: they did not.
	Predicted *JobPredicted `json:"predicted,omitempty"`

	// Super is the super-epoch of grappa that it is of, from 1, and Seen the share of all
	// edges that the groups of their targets have seen so far.
	Super int     `json:"super_epoch,omitempty"`
	Seen  float64 `json:"edges_seen,omitempty"`
}

// JobPredicted is what an epoch of a pipeline takes on average, as its nodes thought by
// what they measured when they met. Notes and the reason say of what it is the sum.
type JobPredicted struct {
	Stages  int     `json:"stages"`
	Ways    int     `json:"ways"`
	Seconds float64 `json:"seconds"`
	History float64 `json:"history"` // of them: a history, shared by the epochs that see it
}

// JobPhases is where the time of an epoch went, in seconds.
type JobPhases struct {
	Sample  float64 `json:"sample"`
	Gather  float64 `json:"gather"`
	Compute float64 `json:"compute"`
	Reduce  float64 `json:"reduce"`
	Wait    float64 `json:"wait"`
}

// JobRows counts the input rows of an epoch by where they were: each once in what is
// computed together or, where a GPU adds up the outermost hop, once for each edge of it.
type JobRows struct {
	Local  uint64 `json:"local"`
	Remote uint64 `json:"remote"`
}

// JobRequests counts what nodes asked each other for.
type JobRequests struct {
	Feature    uint64 `json:"feature"`
	Topology   uint64 `json:"topology"`
	Activation uint64 `json:"activation,omitempty"`
	Gradient   uint64 `json:"gradient,omitempty"`
}

// JobBytes counts what all nodes together sent, payload and framing.
type JobBytes struct {
	Feature    uint64 `json:"feature"`
	Topology   uint64 `json:"topology"`
	Model      uint64 `json:"model"`
	Gradient   uint64 `json:"gradient"`
	Activation uint64 `json:"activation"`
	Shard      uint64 `json:"shard"`
	Control    uint64 `json:"control"`
}

// JobEval is what an exact evaluation took.
type JobEval struct {
	Seconds float64  `json:"seconds"`
	Bytes   JobBytes `json:"bytes"`
}

// JobSummary is one line of `hopmesh train list`.
type JobSummary struct {
	ID          string   `json:"id"`
	State       string   `json:"state"`
	Dataset     string   `json:"dataset"`
	Model       string   `json:"model"`            // of a sweep: all that there are, with commas
	Models      int      `json:"models,omitempty"` // of a sweep: how many
	Strategy    string   `json:"strategy"`
	Epoch       int      `json:"epoch"`
	EpochsTotal int      `json:"epochs_total"`
	Best        *JobBest `json:"best"`
	Nodes       []string `json:"nodes"`
	Error       string   `json:"error"`
	// Owners is, for each shard of the dataset, which of Nodes computes it: its place
	// there. Only the plan tells it, and only of a job whose nodes share the work.
	Owners []int `json:"owners,omitempty"`
}

// JobProgress is how far an epoch has come.
type JobProgress struct {
	Epoch       int  `json:"epoch"`
	EpochsTotal int  `json:"epochs_total"`
	Step        int  `json:"step"`
	Steps       int  `json:"steps"`
	Evaluating  bool `json:"evaluating,omitempty"`
}

// JobEvent is one line of the answer to who watches a job. Exactly one field is set,
// or none in a line that only shows that the daemon is there. A line with End or
// Error is the last.
type JobEvent struct {
	// State comes first, and whenever the job's state changes.
	State    *JobSummary  `json:"state,omitempty"`
	Progress *JobProgress `json:"progress,omitempty"`
	Epoch    *JobEpoch    `json:"epoch,omitempty"` // of a sweep: of the model that is ahead in it, with what it took of all
	Note     string       `json:"note,omitempty"`  // a sentence without a full stop
	End      *Job         `json:"end,omitempty"`
	Error    *ErrorBody   `json:"error,omitempty"`
}

// ResumeRequest says what is to change when a job goes on.
type ResumeRequest struct {
	Rate *float64 `json:"lr,omitempty"`
}

// PredictRequest asks for what a trained model says of every vertex.
type PredictRequest struct {
	Format string `json:"format"` // .npy or .parquet
	// Embeddings asks for what is known of a vertex before it is said which class it
	// has, instead of the classes' scores.
	Embeddings bool `json:"embeddings,omitempty"`
	Index      *int `json:"model_index,omitempty"` // of a sweep's models; none: the best
}

// ExportRequest says which model is wanted.
type ExportRequest struct {
	Index *int `json:"model_index,omitempty"` // of a sweep's models; none: the best
}
