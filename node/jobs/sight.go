package jobs

import (
	"errors"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// sight is what can be seen of a job while it runs, beyond what the plan is told.
type sight struct {
	mu    sync.Mutex
	now   train.Progress
	ahead train.Forecast
	notes []string
	lost  []string // of a sweep with models that have diverged: how, or "", of each
	// unkept is why checkpoints can't be written, "" while they can.
	unkept string
	// broken is how the device of this node failed in the job, "" if it did not.
	broken string
	sum    Totals
	// latest are the last epoch and the last that was evaluated: of a sweep, of the model
	// that was best in it.
	latest, evaluated train.Epoch
}

func (s *sight) announce(f train.Forecast) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.History = nil // the plan keeps it
	s.ahead, s.notes = f, nil
	for _, n := range f.Notes[:min(len(f.Notes), plan.MaxNotes)] {
		s.notes = append(s.notes, sentence(errors.New(n)))
	}
}

// said are the notes, as the plan takes them.
func (s *sight) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes
}

// lose hears how a model of a sweep of so many has ended that diverged.
func (s *sight) lose(model, models int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := make([]string, models) // what was looked at stays as it is
	copy(lost, s.lost)
	lost[model] = sentence(errors.New(why))
	s.lost = lost
}

// diverged are those sentences, as the plan takes them.
func (s *sight) diverged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *sight) kept(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unkept = ""; err != nil {
		s.unkept = sentence(err)
	}
}

func (s *sight) lostDevice(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = sentence(why)
}

func (s *sight) progress(p train.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
}

func (s *sight) epoch(e train.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Epoch != s.latest.Epoch:
		s.latest = e
		s.sum.Epochs++ // the other models of a sweep train in the same
	case e.Loss < s.latest.Loss:
		s.latest = e
	}
	s.sum.Phases.Sample += number(e.Phases.Sample)
	s.sum.Phases.Gather += number(e.Phases.Gather)
	s.sum.Phases.Compute += number(e.Phases.Compute)
	s.sum.Phases.Reduce += number(e.Phases.Reduce)
	s.sum.Phases.Wait += number(e.Phases.Wait)
	s.sum.Rows += e.Rows
	s.sum.Remote += e.Remote
	s.sum.Sent.Add(e.Sent)
	s.sum.Edges += e.Edges
	if e.Eval != nil {
		if s.evaluated.Epoch != e.Epoch || e.Eval.Val.Accuracy > s.evaluated.Eval.Val.Accuracy {
			s.evaluated = e
		}
		s.sum.Evaluating += number(e.Eval.Seconds)
		s.sum.Sent.Add(e.Eval.Sent)
	}
}

func (r *run) seen() Totals {
	r.sight.mu.Lock()
	defer r.sight.mu.Unlock()
	return r.sight.sum
}

// Totals counts what this process has trained.
type Totals struct {
	Epochs     uint64
	Phases     train.Phases // seconds
	Evaluating float64      // seconds
	// Of all nodes that shared those epochs. Remote are those of Rows that came from
	// another node; Sent is what they sent each other, evaluations included.
	Rows, Remote, Edges uint64
	Sent                strategy.Counts
}

func (t *Totals) add(o Totals) {
	t.Epochs += o.Epochs
	t.Phases.Sample += o.Phases.Sample
	t.Phases.Gather += o.Phases.Gather
	t.Phases.Compute += o.Phases.Compute
	t.Phases.Reduce += o.Phases.Reduce
	t.Phases.Wait += o.Phases.Wait
	t.Evaluating += o.Evaluating
	t.Rows += o.Rows
	t.Remote += o.Remote
	t.Edges += o.Edges
	t.Sent.Add(o.Sent)
}

// A View is what can be seen of a Runner.
type View struct {
	// Job is the id of the job under way, "" if there is none; the rest but Totals is
	// of it, and Latest and Evaluated are zero before the first such epoch.
	Job               string
	Progress          train.Progress
	Forecast          train.Forecast
	Notes             []string // sentences of the forecast, as the plan takes them
	Diverged          []string // as the plan takes them, too
	Unkept            string   // why checkpoints can't be written, "" while they can
	Broken            string   // how this node's device failed, "" if it computes
	Latest, Evaluated train.Epoch
	Totals            Totals
}

// View looks at what is going on.
func (r *Runner) View() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := View{Totals: r.totals}
	if r.current == nil || r.current.over() {
		return v
	}
	s := &r.current.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Job, v.Progress, v.Forecast, v.Notes, v.Diverged, v.Latest, v.Evaluated = r.current.job.ID, s.now, s.ahead, s.notes, s.lost, s.latest, s.evaluated
	v.Unkept, v.Broken = s.unkept, s.broken
	v.Totals.add(s.sum)
	return v
}
