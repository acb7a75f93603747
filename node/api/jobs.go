package api

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

// TrainRequest asks for a model to be trained. Fields that are left out get the model's
// defaults.
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
	Batch       *int     `json:"batch,omitempty"`  // training vertices per step, over all nodes; 0: all
	Fanout      []int    `json:"fanout,omitempty"` // from the seed vertices outwards; none: all neighbours
	Features    string   `json:"normalize_features,omitempty"`
	Patience    *int     `json:"patience,omitempty"`
	EvalEvery   *int     `json:"eval_every,omitempty"`
	Split       *int     `json:"split,omitempty"`
	Task        string   `json:"task,omitempty"` // class, multilabel, regression or link; "": what the dataset has
	// RelationFanout is the fan-outs of relations by their names; Fanout is that of all others.
	RelationFanout map[string][]int `json:"relation_fanout,omitempty"`
	// EdgeSplit is the shares of the edges that are for training, validation and test, of task
	// link; none: 0.85, 0.05, 0.1.
	EdgeSplit []float64 `json:"edge_split,omitempty"`
	Loss      string    `json:"loss,omitempty"` // as the setting train.loss
	// From is a job with whose model training begins. What is left out of the model, the task and
	// how features are normalised is as in that job.
	From     string  `json:"from,omitempty"`
	Seed     *uint64 `json:"seed,omitempty"`
	Strategy string  `json:"strategy,omitempty"` // "" is auto
	// Deterministic asks for bitwise equal results on any number of nodes.
	Deterministic bool `json:"deterministic,omitempty"`
	// Set holds settings that have no field of their own, in the order in which they are
	// applied.
	Set []Setting `json:"set,omitempty"`
	// Sweep asks for one model per combination of values, all trained on the same
	// batches. The values of the last key vary fastest.
	Sweep []Sweep `json:"sweep,omitempty"`
}

// Setting is a key and its value, as `hopmesh train options` lists them.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// JobID is the id of a job.
type JobID struct {
	ID string `json:"id"`
}

// Job describes a training job.
type Job struct {
	ID          string   `json:"id"`
	State       string   `json:"state"` // queued, running, done, failed or stopped
	Error       string   `json:"error"` // a sentence without a full stop
	Dataset     string   `json:"dataset"`
	Model       string   `json:"model"`
	Strategy    string   `json:"strategy"`
	Why         string   `json:"why"` // the reason for the strategy
	Seed        uint64   `json:"seed"`
	Generation  uint64   `json:"generation"` // of the plan that assigned the job to its nodes
	Nodes       []string `json:"nodes"`      // names of the nodes that run it, or ran it last
	Devices     []string `json:"devices"`    // the device of each of them; the notes report failed devices
	EpochsTotal int      `json:"epochs_total"`
	Epoch       int      `json:"epoch"` // the current or last one
	Step        int      `json:"step"`  // of Steps, in that epoch
	Steps       int      `json:"steps"`
	Best        *JobBest `json:"best"` // null: nothing evaluated yet
	// Schedule is how the nodes share the epochs, as the plan has it; absent: it has nothing.
	Schedule []JobEntry `json:"schedule,omitempty"`
	History  []JobEpoch `json:"history"` // for a sweep: of its best model, with the cost of all models in each epoch
	Models   []JobModel `json:"models"`  // of a sweep only
	// Notes are sentences, without a full stop, about what affects the result.
	Notes []string `json:"notes"`
	// Memory is that of the node on which the job took most, if any knows.
	Memory *JobMemory `json:"memory,omitempty"`
	// Task is what the job learns of vertices, class, multilabel or regression, or link, which
	// pairs of them have an edge.
	Task string `json:"task"`
	// From is the job with whose model the training began; absent: with none.
	From string `json:"from,omitempty"`
	// Recipe holds all parameters that affect training.
	Recipe json.RawMessage `json:"recipe"`
	// Problems are sentences, without a full stop, as in Status: what the job waits for,
	// which of its nodes does not answer or keeps no checkpoint.
	Problems []string `json:"problems"`
}

// JobEntry is how the nodes of a job share its epochs, from one on until another entry begins.
type JobEntry struct {
	From       int     `json:"from"`       // its first epoch, from 1
	Generation uint64  `json:"generation"` // of the job, in which the nodes agreed on it
	Strategy   string  `json:"strategy"`
	How        string  `json:"how"`          // what the strategy has decided beside, in words
	Rate       float64 `json:"lr,omitempty"` // before the recipe's schedule; absent: each model of a sweep has its own
	Why        string  `json:"why,omitempty"`
}

// JobMemory is what a job takes on a node, in bytes.
type JobMemory struct {
	Forecast uint64 `json:"forecast"` // before any was taken; 0: not known
	Taken    uint64 `json:"taken"`    // at most, beside what the process held before
	// FellBack are sentences, without a full stop, on what was given up so that it fits.
	FellBack []string `json:"fell_back"`
}

// JobBest is the epoch whose model is kept: the best on validation or, without validation
// vertices, the last. Accuracies are between 0 and 1, and null if there are no vertices or the
// task has none.
type JobBest struct {
	Epoch        int      `json:"epoch"`
	Model        *int     `json:"model,omitempty"` // for a sweep: the index of its model, from 0
	ValAccuracy  *float64 `json:"val_acc"`
	TestAccuracy *float64 `json:"test_acc"`
	// Metrics and Metric are as in JobEpoch.
	Metrics *JobMetrics `json:"metrics,omitempty"`
	Metric  string      `json:"metric,omitempty"`
}

// JobMetrics are the metrics of an evaluation by name. A part of the split without vertices has
// none.
type JobMetrics struct {
	Train map[string]float64 `json:"train"`
	Val   map[string]float64 `json:"val"`
	Test  map[string]float64 `json:"test"`
}

// JobModel is one model of a sweep.
type JobModel struct {
	Params  map[string]string `json:"params"` // that distinguish it, as they were typed
	Best    *JobBest          `json:"best"`
	History []JobEpoch        `json:"history"`
	// Diverged is a sentence, without a full stop, about how the model ended if its
	// numbers were no longer finite. The other models go on without it.
	Diverged string `json:"diverged,omitempty"`
}

// JobEpoch holds the measurements of one epoch. Seconds, phases, rows, requests and bytes
// are those of training alone.
type JobEpoch struct {
	Epoch         int         `json:"epoch"`           // from 1
	Model         int         `json:"model,omitempty"` // in a sweep, from 0
	Loss          float64     `json:"loss"`
	TrainAccuracy *float64    `json:"train_acc"` // null: not evaluated or no vertices; same for the other two
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
	// Strategy is the one that was used, and Why the reason if it was chosen. Slots is
	// the number of slots of a step if models migrate. Behind is by how many updates
	// weights were older than their step at most, if p3 overlapped steps.
	Strategy string `json:"strategy,omitempty"`
	Why      string `json:"why,omitempty"`
	Slots    int    `json:"slots,omitempty"`
	Behind   int    `json:"behind,omitempty"`
	// Predicted is the layout of a pipeline if its nodes measured it, else null.
	Predicted *JobPredicted `json:"predicted,omitempty"`

	// Super is the epoch's super-epoch in grappa, from 1. Seen is the share of all edges
	// that the groups of their targets have seen so far.
	Super int     `json:"super_epoch,omitempty"`
	Seen  float64 `json:"edges_seen,omitempty"`
	// Metrics are those of the task by name, of each part of the split; null: not evaluated.
	// Metric names the one that epochs are compared by, where the task has no accuracy.
	Metrics *JobMetrics `json:"metrics"`
	Metric  string      `json:"metric,omitempty"`
	// Figures are what strategies report that have no field of their own above.
	Figures []JobFigure `json:"figures,omitempty"`
}

// The parts of an epoch's record that clients see as they are stored.
type (
	JobPhases    = epoch.Phases
	JobRows      = epoch.Rows
	JobRequests  = epoch.Requests
	JobBytes     = epoch.Bytes
	JobPredicted = epoch.Layout
	JobFigure    = epoch.Figure
)

// JobEval is the cost of an exact evaluation.
type JobEval struct {
	Seconds float64  `json:"seconds"`
	Bytes   JobBytes `json:"bytes"`
}

// JobSummary is one line of `hopmesh train list`.
type JobSummary struct {
	ID          string   `json:"id"`
	State       string   `json:"state"`
	Dataset     string   `json:"dataset"`
	Model       string   `json:"model"`            // for a sweep: all kinds, separated by commas
	Models      int      `json:"models,omitempty"` // of a sweep: the number of models
	Strategy    string   `json:"strategy"`
	Epoch       int      `json:"epoch"`
	EpochsTotal int      `json:"epochs_total"`
	Best        *JobBest `json:"best"`
	Nodes       []string `json:"nodes"`
	Error       string   `json:"error"`
	// Owners holds, for each shard of the dataset, the index in Nodes of the node that
	// computes it. It is set only in a Plan, and only if nodes share the work.
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

// JobEvent is one line of the answer to a watch request. Exactly one field is set, or
// none in a keep-alive line. A line with End or Error is the last.
type JobEvent struct {
	// State comes first, and whenever the job's state changes.
	State    *JobSummary  `json:"state,omitempty"`
	Progress *JobProgress `json:"progress,omitempty"`
	Epoch    *JobEpoch    `json:"epoch,omitempty"` // for a sweep: of the best model in it, with the cost of all models
	Note     string       `json:"note,omitempty"`  // a sentence without a full stop
	End      *Job         `json:"end,omitempty"`
	Error    *ErrorBody   `json:"error,omitempty"`
}

// ResumeRequest holds the changes to a job that is resumed.
type ResumeRequest struct {
	Rate *float64 `json:"lr,omitempty"`
}

// PredictRequest asks for a trained model's predictions for every vertex, or for pairs.
type PredictRequest struct {
	Dataset string `json:"dataset,omitempty"` // with the same columns of features; "": that of the job
	Format  string `json:"format"`            // .npy or .parquet; of pairs also .csv, .tsv or .json
	// Embeddings asks for the vertices' last hidden representations instead of the class
	// scores.
	Embeddings bool `json:"embeddings,omitempty"`
	Index      *int `json:"model_index,omitempty"` // of a sweep's model; none: the best
	PairOptions
}

// EvaluateRequest asks how well a model does on the split of a dataset.
type EvaluateRequest struct {
	Dataset string `json:"dataset,omitempty"` // with the same columns of features; "": that of the job
	// Split is one of the dataset's; none: that of the job, or the first of another dataset.
	Split *int `json:"split,omitempty"`
	Index *int `json:"model_index,omitempty"` // of a sweep's model; none: the best
}

// Evaluation is how well a job's model does on a dataset. Accuracies are between 0 and 1, and null
// if there are no vertices or the task has none.
type Evaluation struct {
	ID      string `json:"id"` // of the job
	Dataset string `json:"dataset"`
	Task    string `json:"task"`
	Split   int    `json:"split"`
	Epoch   int    `json:"epoch"` // of the model's weights
	// Counts are how many vertices, or pairs, were compared.
	Counts        SplitSizes `json:"counts"`
	TrainAccuracy *float64   `json:"train_acc"`
	ValAccuracy   *float64   `json:"val_acc"`
	TestAccuracy  *float64   `json:"test_acc"`
	Metrics       JobMetrics `json:"metrics"`
	Metric        string     `json:"metric"` // by which epochs of the job were compared
	Seconds       float64    `json:"seconds"`
}

// EvaluationEvent is one line of the answer to a request to evaluate. Exactly one field is set, or
// none in a keep-alive line. It is the last that has one.
type EvaluationEvent struct {
	End   *Evaluation `json:"end,omitempty"`
	Error *ErrorBody  `json:"error,omitempty"`
}

// ExportRequest selects the model to export.
type ExportRequest struct {
	Index *int `json:"model_index,omitempty"` // of a sweep's model; none: the best
}

var (
	models     = []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "rgcn", "hgt", "hetero:sage", "hetero:gat", "hetero:gcn", "hetero:gin", "mpnn", "mlp"}
	optimizers = []string{"adam", "adamw", "sgd"}
	norms      = []string{"none", "layer"}
	normalised = []string{"auto", "row", "none", "binary", "binary-row"}
	formatsOut = []string{".npy", ".parquet"}
)

// maxEpochs bounds a job, since the plan keeps a record of each epoch.
const maxEpochs = 10_000

// maxSettings is more than the number of settings.
const maxSettings = 256

// ProgramModel is the model of jobs whose steps are computed by programs that attach to them.
// It goes with the strategy of that name, and is no kind that users choose.
const ProgramModel = "program"

// Models lists the kinds of models that users choose from.
func Models() []string { return slices.Clone(models) }

// Optimizers lists the optimizers.
func Optimizers() []string { return slices.Clone(optimizers) }

// Norms lists the norms that may follow a layer.
func Norms() []string { return slices.Clone(norms) }

// Normalizations lists the normalizations of input features.
func Normalizations() []string { return slices.Clone(normalised) }

// PredictFormats lists the formats of predictions, as file name extensions.
func PredictFormats() []string { return slices.Clone(formatsOut) }

// Check returns an error if no node would accept the request. The command line calls it
// too, before it contacts a daemon. The node checks the strategy, and what depends on the
// model or the dataset.
func (r TrainRequest) Check() error {
	switch {
	case r.Dataset == "":
		return Invalid("the request names no dataset: `hopmesh dataset list` shows those there are")
	case r.Epochs != nil && *r.Epochs > maxEpochs:
		return Invalid("%d epochs are too many: give 1 to %d", *r.Epochs, maxEpochs)
	case len(r.Set) > maxSettings:
		return Invalid("%d settings are too many", len(r.Set))
	case len(r.EdgeSplit) != 0 && len(r.EdgeSplit) != 3:
		return Invalid("--edge-split has %d shares: give three, of training, validation and test, such as 0.85,0.05,0.1", len(r.EdgeSplit))
	case len(r.EdgeSplit) > 0 && r.Task != link && (r.Task != "" || r.From == ""):
		return Invalid("--edge-split is for --task link: give both, or leave it out")
	}
	for _, share := range r.EdgeSplit {
		if !finite(share) {
			return notFinite("--edge-split", share)
		}
	}
	if err := r.checkNumbers(); err != nil {
		return err
	}
	for _, s := range r.Set {
		// No setting has a word as a value that parses as a number.
		if x, err := strconv.ParseFloat(s.Value, 64); err == nil && !finite(x) {
			return notFinite("--set "+s.Key, x)
		}
	}
	for _, w := range []struct {
		what, word string
		list       []string
	}{
		{"model", r.Model, models}, {"optimizer", r.Optimizer, optimizers}, {"norm", r.Norm, norms},
		{"way to normalise features", r.Features, normalised},
	} {
		if w.word == ProgramModel && w.what == "model" {
			continue // the check of the strategy decides
		}
		if err := among(w.what, w.word, w.list); err != nil {
			return err
		}
	}
	return r.checkSweep()
}

// checkNumbers returns an error if a number is wrong with any model and any dataset.
func (r TrainRequest) checkNumbers() error {
	if err := checkRate(r.Rate); err != nil {
		return err
	}
	for _, n := range []struct {
		flag  string
		value *float64
	}{{"--dropout", r.Dropout}, {"--weight-decay", r.WeightDecay}} {
		switch {
		case n.value == nil:
		case !finite(*n.value):
			return notFinite(n.flag, *n.value)
		case *n.value < 0 || *n.value >= 1:
			return Invalid("%s is %g, but must be at least 0 and below 1", n.flag, *n.value)
		}
	}
	for _, n := range []struct {
		flag  string
		value *int
		least int
	}{
		{"--layers", r.Layers, 1}, {"--hidden", r.Hidden, 1}, {"--heads", r.Heads, 0}, {"--epochs", r.Epochs, 1},
		{"--patience", r.Patience, 0}, {"--eval-every", r.EvalEvery, 1}, {"--split", r.Split, 0},
	} {
		if n.value != nil && *n.value < n.least {
			return Invalid("%s is %d, but must be at least %d", n.flag, *n.value, n.least)
		}
	}
	return nil
}

// Check returns an error if no node would accept the request.
func (r ResumeRequest) Check() error { return checkRate(r.Rate) }

// checkRate returns an error unless this is a learning rate, or nil.
func checkRate(rate *float64) error {
	switch {
	case rate == nil:
		return nil
	case !finite(*rate):
		return notFinite("--lr", *rate)
	case *rate <= 0:
		return Invalid("--lr is %g: give a number above 0, such as 0.001", *rate)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func notFinite(flag string, x float64) error {
	return Invalid("%s is %g, which is no number to compute with: give a finite one", flag, x)
}

// Check returns an error if no node would accept the request.
func (r EvaluateRequest) Check() error {
	if r.Split != nil && *r.Split < 0 {
		return Invalid("--split is %d: give the number of a split of the dataset, from 0", *r.Split)
	}
	return nil
}

// Check returns an error if no node would accept the request.
func (r PredictRequest) Check() error {
	if r.Format == "" {
		return Invalid("the request names no format: use .npy or .parquet")
	}
	if err := among("task", r.Task, TrainTasks()); err != nil {
		return err
	}
	if err := r.check(r); err != nil {
		return err
	}
	if r.Paired() {
		return among("format of pairs", r.Format, pairFormats)
	}
	return among("format of predictions", r.Format, formatsOut)
}
