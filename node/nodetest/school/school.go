package school

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Note is a note that each run reports.
const Note = "it is only a school"

// School is the fake engine of all nodes of a test. Its fields are set before they train.
type School struct {
	Pace   time.Duration // of an epoch
	Fail   int           // the epoch that fails; 0: none
	Judged int           // vertices for validation
	// Fault, if not nil, is called after each epoch and returns the error with which it
	// fails on a node. node is "" if one node runs the job alone.
	Fault func(node string, epoch int) error
	// Unkept, if not nil, is called after each epoch and returns the error why a node
	// keeps no checkpoint.
	Unkept func(node string) error
	// Stops is for sweeps: the last epoch of each model; 0 or missing: it trains to the
	// end.
	Stops []int
	// Lost is for sweeps: the epoch in which each model diverges; 0 or missing: it does
	// not.
	Lost []int

	mu   sync.Mutex
	runs []Run
	busy int
	most int
}

// Run is one call of Train.
type Run struct {
	Job   string
	After int      // epochs that were known at the start
	Node  string   // "" if one node runs the job alone
	Nodes []string // none if one node runs the job alone
	At    time.Time
	Held  int // shards that were open
	Known int // of those, the copies that all nodes of the job know
}

func (r Run) String() string { return fmt.Sprintf("%s after %d", r.Job, r.After) }

// Runs lists the runs that have started, in order.
func (s *School) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// Said describes Runs in words.
func (s *School) Said() []string {
	var words []string
	for _, r := range s.Runs() {
		words = append(words, r.String())
	}
	return words
}

// Most returns the highest number of concurrent runs so far.
func (s *School) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Train replaces train.Run.
func (s *School) Train(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o train.Options) (train.Result, error) {
	path := filepath.Join(o.Dir, train.CheckpointFile)
	history, err := known(path, o.Resume)
	if err != nil {
		return train.Result{}, err
	}
	held, err := check(shards, o)
	if err != nil {
		return train.Result{}, err
	}
	var class *class
	if o.Peers != nil {
		class = newClass(o)
		if history, err = class.meet(ctx, history); err == nil {
			err = keep(path, history)
		}
		if err != nil {
			return train.Result{}, err
		}
	}
	defer s.enter(Run{Job: filepath.Base(o.Dir)[:2], After: lastOf(history), Node: class.name(), Nodes: o.Work.Nodes, At: time.Now(), Held: held, Known: copies(o.Work)})()
	o.Announce(train.Forecast{Resumed: lastOf(history), History: history, Notes: []string{Note}})
	for model := range s.Lost {
		if at := s.Lost[model]; at > 0 && at <= lastOf(history) {
			o.Lost(model, lostIn(model, at))
		}
	}
	for n := lastOf(history) + 1; n <= r.Epochs; n++ {
		o.Progress(train.Progress{Epoch: n, Step: 1, Steps: 2})
		select {
		case <-time.After(s.Pace):
		case <-ctx.Done():
			return train.Result{}, context.Cause(ctx)
		}
		if n == s.Fail {
			return train.Result{}, errors.New("the training diverged\nin epoch " + fmt.Sprint(n))
		}
		if s.Fault != nil {
			if err := s.Fault(class.name(), n); err != nil {
				return train.Result{}, err
			}
		}
		if s.Unkept != nil {
			o.Kept(s.Unkept(class.name()))
		}
		if err := class.together(ctx, n); err != nil {
			return train.Result{}, err
		}
		at := len(history)
		for model := range r.Models() {
			if model < len(s.Lost) && s.Lost[model] > 0 && n >= s.Lost[model] {
				if n == s.Lost[model] {
					o.Lost(model, lostIn(model, n))
				}
				continue
			}
			if model >= len(s.Stops) || s.Stops[model] == 0 || n <= s.Stops[model] {
				history = append(history, s.epoch(n, model, class))
			}
		}
		if at == len(history) {
			break // all models have stopped
		}
		if err := keep(path, history); err != nil {
			return train.Result{}, err
		}
		for _, e := range history[at:] {
			o.Report(e)
		}
	}
	if len(r.Sweep) > 0 {
		return sweptResult(len(r.Sweep), history), class.leave(ctx)
	}
	return train.Result{Best: history[min(2, len(history)-1)], Last: history[len(history)-1]}, class.leave(ctx)
}

// lostIn returns the sentence for a model that diverges.
func lostIn(model, epoch int) string {
	return fmt.Sprintf("model %d diverged in epoch %d", model, epoch)
}

// sweptResult returns the result of a sweep. The best epoch of each model is the third,
// or its last if it ended before. Of equally good models, the last one is best.
func sweptResult(models int, history []trained.Epoch) train.Result {
	r := train.Result{Models: make([]train.Result, models), Last: history[len(history)-1]}
	for _, e := range history {
		m := &r.Models[e.Model]
		if m.Last = e; e.Epoch <= 3 {
			m.Best = e
		}
	}
	for _, m := range r.Models {
		if r.Best.Eval == nil || m.Best.Eval.Score >= r.Best.Eval.Score {
			r.Best = m.Best
		}
	}
	return r
}

// lastOf returns the last known epoch.
func lastOf(history []trained.Epoch) int {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Epoch
}

// enter records a run as running until leave is called.
func (s *School) enter(r Run) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, r)
	s.busy++
	s.most = max(s.most, s.busy)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	}
}

// epoch returns the result of one epoch.
func (s *School) epoch(n, model int, c *class) trained.Epoch {
	score := float64(n%4) / 4
	e := epoch.Record{
		Epoch: n, Model: model, Loss: 1 / float64(n), Seconds: s.Pace.Seconds(), Hash: fmt.Sprintf("%064x", n), Rows: epoch.Rows{Local: 400},
		Eval: &epoch.Eval{Train: new(1.0), Test: new(score / 2), Score: score, Loss: float64(n)},
	}
	if s.Judged > 0 {
		e.Eval.Val = &score
	}
	if c != nil {
		e.Rows, e.Strategy = epoch.Rows{Local: 300, Remote: 100}, "leap"
	}
	if model > 0 {
		e.Rows = epoch.Rows{} // they are gathered once for all models
	}
	return trained.Epoch{Record: e}
}

// known returns the history in the checkpoint.
func known(path string, resume bool) (history []trained.Epoch, err error) {
	b, err := os.ReadFile(path)
	if err != nil || !resume {
		return nil, nil //nolint:nilerr // there is none
	}
	return history, json.Unmarshal(b, &history)
}

func keep(path string, history []trained.Epoch) error {
	b, err := json.Marshal(history)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// copies counts this node's copies that the work lists.
func copies(w peer.Work) (n int) {
	for _, holders := range w.Holders {
		if slices.Contains(holders, w.Self) {
			n++
		}
	}
	return n
}

// check counts the open shards. It returns an error unless all that this node owns are
// open.
func check(shards []*graph.Shard, o train.Options) (held int, err error) {
	for i, s := range shards {
		switch {
		case s != nil:
			held++
			if s.Shards != len(shards) {
				return 0, fmt.Errorf("%d shards are given, of %d", len(shards), s.Shards)
			}
		case o.Peers == nil || o.Work.Owners[i] == o.Work.Self:
			return 0, fmt.Errorf("shard %d is not there", i)
		}
	}
	return held, nil
}
