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

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Note is what each run says of itself.
const Note = "it is only a school"

// A School is where all nodes of a test train. Its fields are set before they do.
type School struct {
	Pace   time.Duration // of an epoch
	Fail   int           // the epoch that goes wrong; 0: none
	Judged int           // vertices for validation
	// Fault, if not nil, is asked after each epoch how it goes wrong on a node, by its
	// name, which is "" where one node does it all.
	Fault func(node string, epoch int) error
	// Unkept, if not nil, says after each epoch why a node, by its name, keeps no checkpoint.
	Unkept func(node string) error
	// Stops are for sweeps: the last epoch of each model; 0, or none: it goes on to the end.
	Stops []int
	// Lost are for sweeps: the epoch in which each model diverges; 0, or none: it does not.
	Lost []int

	mu   sync.Mutex
	runs []Run
	busy int
	most int
}

// A Run is one call of Train.
type Run struct {
	Job   string
	After int      // epochs that were known when it began
	Node  string   // "" where one node does it all
	Nodes []string // none where one node does it all
	At    time.Time
	Held  int // shards that were there
	Known int // of those, the copies that all nodes of the job know of
}

func (r Run) String() string { return fmt.Sprintf("%s after %d", r.Job, r.After) }

// Runs lists those that have begun, in order.
func (s *School) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// Said is Runs in words.
func (s *School) Said() []string {
	var words []string
	for _, r := range s.Runs() {
		words = append(words, r.String())
	}
	return words
}

// Most is how many runs there ever were at once.
func (s *School) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Train stands in for train.Run.
func (s *School) Train(ctx context.Context, r train.Recipe, shards []*graph.Shard, o train.Options) (train.Result, error) {
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
			break // all have stopped
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

// lostIn is what is said of a model that diverges.
func lostIn(model, epoch int) string {
	return fmt.Sprintf("model %d diverged in epoch %d", model, epoch)
}

// sweptResult is how a sweep ended. Of each model the third epoch is the best, or its last
// if that came before; of models that did as well, the last one.
func sweptResult(models int, history []train.Epoch) train.Result {
	r := train.Result{Models: make([]train.Result, models), Last: history[len(history)-1]}
	for _, e := range history {
		m := &r.Models[e.Model]
		if m.Last = e; e.Epoch <= 3 {
			m.Best = e
		}
	}
	for _, m := range r.Models {
		if r.Best.Eval == nil || m.Best.Eval.Val.Accuracy >= r.Best.Eval.Val.Accuracy {
			r.Best = m.Best
		}
	}
	return r
}

// lastOf is the last epoch that is known.
func lastOf(history []train.Epoch) int {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Epoch
}

// enter notes a run, until what it returns is called.
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

// epoch is what is learnt in one.
func (s *School) epoch(n, model int, c *class) train.Epoch {
	score := float64(n%4) / 4
	e := train.Epoch{
		Epoch: n, Model: model, Loss: 1 / float64(n), Seconds: s.Pace.Seconds(), Hash: fmt.Sprintf("%064x", n), Rows: 400,
		Eval: &train.Eval{
			Train: train.Scores{Count: 1, Accuracy: 1}, Val: train.Scores{Count: s.Judged, Accuracy: score, Loss: float64(n)},
			Test: train.Scores{Count: 1, Accuracy: score / 2},
		},
	}
	if model > 0 {
		e.Rows = 0 // which are gathered once for all
	}
	if c != nil {
		e.Remote, e.Strategy = 100, "leap"
	}
	return e
}

// known is what the checkpoint tells of.
func known(path string, resume bool) (history []train.Epoch, err error) {
	b, err := os.ReadFile(path)
	if err != nil || !resume {
		return nil, nil //nolint:nilerr // there is none
	}
	return history, json.Unmarshal(b, &history)
}

func keep(path string, history []train.Epoch) error {
	b, err := json.Marshal(history)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// copies counts those of this node that the work names.
func copies(w strategy.Work) (n int) {
	for _, holders := range w.Holders {
		if slices.Contains(holders, w.Self) {
			n++
		}
	}
	return n
}

// check counts the shards that are there: all that this node owns must be.
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
