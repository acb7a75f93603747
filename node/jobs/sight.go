package jobs

import (
	"errors"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// sight holds the live state of a running job, beyond what the plan records.
type sight struct {
	mu    sync.Mutex
	now   train.Progress
	ahead train.Forecast
	notes []string
	lost  []string // for a sweep with diverged models: by model, how it diverged, or ""
	// unkept is why checkpoints can't be written, or "".
	unkept string
	// broken is how this node's device failed in the job, or "".
	broken string
	sum    Totals
	// latest and evaluated are the last epoch and the last evaluated one. In a sweep they
	// are those of the model that was best in that epoch.
	latest, evaluated epoch.Record
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

// said returns the notes, in a form that the plan takes.
func (s *sight) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes
}

// lose records how a model of a sweep has diverged; models is the number of its models.
func (s *sight) lose(model, models int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := make([]string, models) // slices that View returned do not change
	copy(lost, s.lost)
	lost[model] = sentence(errors.New(why))
	s.lost = lost
}

// diverged returns those sentences, in a form that the plan takes.
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

func (s *sight) epoch(e *trained.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Epoch != s.latest.Epoch:
		s.latest = e.Record
		s.sum.Epochs++ // the other models of a sweep train in the same epoch
	case e.Loss < s.latest.Loss:
		s.latest = e.Record
	}
	s.sum.Phases.Add(e.Phases)
	s.sum.Rows.Add(e.Rows)
	s.sum.Bytes.Add(e.Bytes)
	s.sum.Edges += e.Edges
	if e.Eval != nil {
		if s.evaluated.Epoch != e.Epoch || s.evaluated.Eval.Val == nil || e.Eval.Val != nil && *e.Eval.Val > *s.evaluated.Eval.Val {
			s.evaluated = e.Record
		}
		s.sum.Evaluating += e.Eval.Seconds
		s.sum.Bytes.Add(e.Eval.Bytes)
	}
}

// Totals counts what this process has trained.
type Totals struct {
	Epochs     uint64
	Phases     epoch.Phases
	Evaluating float64 // seconds
	// Summed over all nodes that shared those epochs. Bytes are those that they sent each
	// other, evaluations included.
	Rows  epoch.Rows
	Bytes epoch.Bytes
	Edges uint64
}

func (t *Totals) add(o Totals) {
	t.Epochs += o.Epochs
	t.Phases.Add(o.Phases)
	t.Evaluating += o.Evaluating
	t.Rows.Add(o.Rows)
	t.Bytes.Add(o.Bytes)
	t.Edges += o.Edges
}

// View is a snapshot of a Runner.
type View struct {
	// Job is the id of the current job, or "". All other fields but Totals describe that
	// job. Latest and Evaluated are zero before the first such epoch.
	Job               string
	Progress          train.Progress
	Forecast          train.Forecast
	Notes             []string // sentences of the forecast, in a form that the plan takes
	Diverged          []string // in a form that the plan takes, too
	Unkept            string   // why checkpoints can't be written, or ""
	Broken            string   // how this node's device failed, or ""
	Programless       bool     // the job waits for its program here
	Latest, Evaluated epoch.Record
	Totals            Totals
}

// View returns the current state.
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
	v.Programless = r.current.past.desk.Waits()
	v.Totals.add(s.sum)
	return v
}
