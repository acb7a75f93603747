package trained

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// An Epoch is the report of one epoch: its record, and what only this run has to know.
type Epoch struct {
	epoch.Record
	Rate  float64 `json:"lr"`
	Steps int     `json:"steps"`
	Edges uint64  `json:"edges"` // over which rows were summed, on all nodes
	// Sent counts what all nodes sent each other, of which the record has a part. Scores
	// are those of its evaluation; nil: not evaluated.
	Sent   peer.Counts      `json:"sent,omitzero"`
	Scores *evaluate.Result `json:"scores,omitempty"`
}

// MarshalJSON writes an Epoch of a checkpoint, whose head bounds how many fit. What can
// be made of Sent and Scores again is left out.
func (e Epoch) MarshalJSON() ([]byte, error) {
	type plain Epoch
	e.Requests, e.Bytes = epoch.Requests{}, epoch.Bytes{}
	if e.Scores != nil {
		e.Eval = nil
	}
	return json.Marshal(plain(e))
}

// UnmarshalJSON reads an Epoch of a checkpoint, but for its evaluation, which Rank adds.
// Those of the first format had other names for some fields.
func (e *Epoch) UnmarshalJSON(text []byte) error {
	type plain Epoch
	if !bytes.Contains(text, []byte(`"weights_sha256"`)) {
		if err := json.Unmarshal(text, (*plain)(e)); err != nil {
			return err
		}
		e.Requests, e.Bytes = e.Sent.Record()
		return nil
	}
	var first struct {
		plain
		Rows   uint64           `json:"rows"` // those of other nodes, too
		Remote uint64           `json:"remote"`
		Hash   string           `json:"weights_sha256"`
		Scores *evaluate.Result `json:"eval"`
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return err
	}
	*e = Epoch(first.plain)
	e.Rows = epoch.Rows{Local: first.Rows - min(first.Remote, first.Rows), Remote: first.Remote}
	e.Requests, e.Bytes = e.Sent.Record()
	e.Hash, e.Scores = first.Hash, first.Scores
	return nil
}

// Rank adds the evaluation to an Epoch that was read, by the metric of its run.
func (e *Epoch) Rank(metric string) {
	if e.Scores != nil && e.Eval == nil {
		e.Eval = e.Scores.Record(metric)
	}
}

// Took adds the work of another epoch to this one.
func (e *Epoch) Took(o *Epoch) {
	e.AddCost(&o.Record)
	e.Edges += o.Edges
	e.Sent.Add(o.Sent)
}

// State is the state of a run beside its weights: what a checkpoint must hold for a
// resumed run to be the same as an uninterrupted one.
type State struct {
	// Epoch is the one under way, from 1, and Step how many of its steps are done; if
	// all are, it is yet to be evaluated. The run is done when Epoch is above the
	// recipe's epochs, or Early or Diverged is set.
	Epoch int  `json:"epoch"`
	Step  int  `json:"step"`
	Early bool `json:"early"`
	// Diverged is set for a model of a sweep that diverged: the others go on without
	// it.
	Diverged *Diverged `json:"diverged,omitempty"`
	// Losses is the sum of the losses of all rows of this epoch's steps.
	Losses float64 `json:"losses"`
	// Under is the report of the epoch under way so far.
	Under Epoch `json:"under"`
	// Best is the epoch of the best weights; nil until one was evaluated.
	Best *Epoch `json:"best,omitempty"`
	// Waited counts the evaluations since the best. Stayed counts those since the best
	// or since a plateau lowered the rate, and Falls how often that happened.
	Waited int `json:"waited"`
	Stayed int `json:"stayed"`
	Falls  int `json:"falls"`
	// Last is the last epoch that is done.
	Last Epoch `json:"last"`
	// Super is grappa's super-epoch where plateaus end them, and Turned the last epoch
	// of the one before.
	Super  int `json:"super,omitempty"`
	Turned int `json:"turned,omitempty"`
	// Halo bounds the halo rows of a grappa group, where memory bounds them.
	Halo int `json:"halo,omitempty"`
	// Ways is the number of ways chosen by the nodes of a pipeline; 0: nothing yet.
	Ways int `json:"ways,omitempty"`
	// Tuning is the dealer's tuning.
	Tuning deal.Tuning `json:"tuning,omitzero"`
}

// KeepUnder keeps what this node had done of an epoch, if that is under way. The other node, whose
// checkpoint was taken over, reports its own work on it: this one reports what it did, as far as it knows.
func (s *State) KeepUnder(epoch int, own Epoch) {
	of := &s.Under
	if s.Epoch != epoch {
		own = Epoch{}
	}
	own.Epoch, own.Model, own.Steps, own.Rate, own.Seconds = of.Epoch, of.Model, of.Steps, of.Rate, max(own.Seconds, of.Seconds)
	*of = own
}

// Rise records an evaluation and reports whether it is the best so far.
func (s *State) Rise(e *Epoch, r *recipe.Recipe) bool {
	if s.Best == nil || e.Better(s.Best.Record) {
		best := *e
		s.Best = &best
		s.Waited, s.Stayed = 0, 0
		return true
	}
	s.Waited++
	s.Stayed++
	if r.Schedule.Kind == recipe.Plateau && s.Stayed >= r.Schedule.Every && e.Epoch > r.Schedule.Warmup {
		s.Falls++
		s.Stayed = 0
	}
	s.Early = r.Patience > 0 && s.Waited >= r.Patience
	return false
}

// Done reports whether there is nothing left to train.
func (s *State) Done(r *recipe.Recipe) bool {
	return s.Early || s.Diverged != nil || s.Epoch > r.Epochs
}

// Diverged is the error of a run whose numbers are no longer finite. The previous
// checkpoint is kept.
type Diverged struct {
	Model       string // of a sweep; "" where there is one
	Epoch, Step int    // from 1
	Where       string // the first that is not finite: "the weight layers.0.weight"
	Node        string // that computed it, if it is another one
	Rate        float64
	Features    bool   // the dataset is at fault, whatever the rate
	Checkpoint  string // the last that a finite step followed; "" if there is none
	// CheckpointEpoch and CheckpointStep are the place of the checkpoint.
	CheckpointEpoch, CheckpointStep int
}

func (e *Diverged) Error() string {
	then := "start again with a smaller {lr}"
	if e.Features {
		then = "correct them and import the dataset anew"
	}
	if e.Checkpoint != "" && !e.Features {
		then = fmt.Sprintf("go on with a smaller {lr} from the checkpoint %s, which is of epoch %d after step %d, or start again", e.Checkpoint, e.CheckpointEpoch, e.CheckpointStep)
	}
	where := e.Where
	if e.Node != "" {
		where += " on node " + e.Node
	}
	what := "the training"
	if e.Model != "" {
		what = e.Model
	}
	return fmt.Sprintf("%s diverged: in epoch %d, step %d, at a learning rate of %g, %s is not finite: %s", what, e.Epoch, e.Step, e.Rate, where, then)
}
