package train

import (
	"context"
	"time"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A Learner is one model of a run, with all that it does not share with the other
// models of a sweep. A run without a sweep has one.
//
// Learners take turns: each does a step before the run goes on to the next, all with
// the same slot. Their states decide which of them take part in a step, so all nodes
// decide alike, even in runs that were interrupted within a step.
type Learner struct {
	Run    *Trainer
	Index  int           // among those of the run
	Recipe recipe.Recipe // its own
	Model  *nn.Model
	Task   task.Task

	Weights   tensor.Matrix
	Gradients tensor.Matrix
	Optimizer *nn.Optimizer
	Pass      *nn.Pass
	Rows      *embedding.Table // learnt ones of vertices; nil: there are none
	view      *evaluate.View

	Extras []checkpoint.Extra // of checkpoints, beside weights and moments

	Host []float32 // a copy of the weights, for hashes and checkpoints
	course
}

// course is the progress of a learner.
type course struct {
	At      trained.State
	History []trained.Epoch
	best    []float32     // the weights of At.Best, empty if there is none
	end     trained.Epoch // the epoch that has just ended
	// Doubted: the state before the next step is not finite. That step reports it on
	// all nodes.
	Doubted bool
}

// newLearners makes the learners of a recipe, without memory.
func (t *Trainer) newLearners() error {
	for i, r := range t.Recipe.Models() {
		m, err := r.NewModel(t.Data.About.Features, t.Data.About.Classes)
		if err != nil {
			return err
		}
		l := &Learner{Run: t, Index: i, Recipe: r, Model: m, Task: task.New(r.TaskSpec(&t.Data.About)), course: course{At: trained.State{Epoch: 1}}}
		t.Learners = append(t.Learners, l)
	}
	return nil
}

// allocate takes the memory that lives as long as the run.
func (t *Learner) allocate(ctx context.Context) (err error) {
	size := t.Model.Size()
	t.Weights = t.Run.Kept.Alloc(t.Run.Device.Type(), 1, size)
	t.Gradients = t.Run.Kept.Alloc(t.Run.Device.Type(), 1, size)
	if of, learned := t.Task.(task.Learned); learned {
		of.Attach(t.Model.AddedOf(t.Weights), t.Model.AddedOf(t.Gradients))
	}
	if t.Optimizer, err = nn.NewOptimizer(t.Recipe.Optimizer, t.Run.Device, t.Run.Kept, size); err != nil {
		return err
	}
	if err := t.Run.Method.Attach(t); err != nil {
		return err
	}
	if err := t.draw(ctx); err != nil {
		return err
	}
	t.Host = make([]float32, size)
	return t.embed(ctx)
}

// draw sets the weights that training begins with.
func (t *Learner) draw(ctx context.Context) error {
	return t.Model.Draw(ctx, t.Recipe.Seed, func(first int, some []float64) {
		t.Run.Device.Write(t.Weights.View(0, 1, first, len(some)), some)
	})
}

// anew has the learner begin anew, whatever it has adopted.
func (t *Learner) anew(ctx context.Context) error {
	t.course, t.Run.adopted = course{At: trained.State{Epoch: 1}}, false
	t.Optimizer.SetSteps(0)
	for _, m := range t.Optimizer.Moments() {
		t.Run.Device.Zero(m.Row)
	}
	t.Rows.Reset()
	return t.draw(ctx)
}

// embed has rows of the vertices learnt, if the recipe says so.
func (t *Learner) embed(ctx context.Context) error {
	r := t.Run
	if t.Recipe.Embeddings == 0 {
		return nil
	}
	t.Rows = embedding.New(embedding.Options{
		Vertices: int(r.Data.About.Vertices), Columns: t.Recipe.Embeddings, Seed: t.Recipe.Seed, Optimizer: t.Recipe.Optimizer,
		Features: r.Data.About.Features - t.Recipe.Embeddings, Bare: t.Recipe.Bare,
		Shards: len(r.Data.Shards) + len(r.Session.Work.Nodes), Device: r.Device,
		Layout: &r.Session.Layout, Self: r.Session.Work.Self, Apart: r.Sharing.learnt.Apart,
	})
	r.Session.Source.Guard(t.Rows)
	t.Extras = append(t.Extras, t.Rows)
	return t.Rows.Join(ctx, r.Session, r.Data)
}

// Doubt returns what is wrong before a step has begun; "" if nothing is known to be.
func (t *Learner) Doubt() string {
	if t.Doubted {
		return "what the step began with"
	}
	return ""
}

// Done reports whether there is nothing left for it to learn.
func (t *Learner) Done() bool { return t.At.Done(&t.Recipe) }

// Clock counts the time since training began, went on or was counted last.
func (t *Learner) Clock() {
	now := time.Now()
	t.At.Under.Seconds += now.Sub(t.Run.begun).Seconds()
	t.Run.begun = now
}

// Place returns the place of the learner that is furthest behind, of those that are not
// done; if all are, that of the furthest.
func (t *Trainer) Place() checkpoint.Place {
	var first, last checkpoint.Place
	for _, l := range t.Learners {
		switch at := (checkpoint.Place{Epoch: l.At.Epoch, Step: l.At.Step, Left: 1}); {
		case l.Done():
			if last.Before(at) {
				last = at
			}
		case first.Left == 0 || at.Before(first):
			first = at
		case !first.Before(at):
			first.Left++
		}
	}
	if first.Left == 0 {
		last.Left = 0
		return last
	}
	return first
}

// Take sets Turn to the learners that do a step of an epoch.
func (t *Trainer) Take(epoch, step int) {
	t.Turn = t.Turn[:0]
	for _, l := range t.Learners {
		if l.At.Epoch == epoch && l.At.Step == step && !l.Done() {
			t.Turn = append(t.Turn, l)
		}
	}
}

// Lead returns the first of the learners whose turn it is. Work that is shared by all
// of them is reported with its epoch.
func (t *Trainer) Lead() *Learner {
	for _, l := range t.Turn {
		if !l.Done() {
			return l
		}
	}
	return t.Learners[0]
}

// Done reports whether all learners are done.
func (t *Trainer) Done() bool { return t.Place().Left == 0 }

// updates counts the updates of all learners.
func (t *Trainer) updates() (n uint64) {
	for _, l := range t.Learners {
		n += l.Optimizer.Steps()
	}
	return n
}

// tuning returns the dealer's tuning, of which each learner has a copy.
func (t *Trainer) tuning() deal.Tuning { return t.Learners[0].At.Tuning }

func (t *Trainer) tuned(w deal.Tuning) {
	for _, l := range t.Learners {
		l.At.Tuning = w
	}
}

// Sweeps reports whether there are several learners.
func (t *Trainer) Sweeps() bool { return len(t.Learners) > 1 }

// Hash returns the SHA-256 of the weights: 32-bit floats, little-endian, in the order
// of the model's params. It leaves a copy of them in Host.
func (t *Learner) Hash() string {
	t.Run.Device.Read32(t.Host, t.Weights)
	return trained.Hash(t.Host, t.Rows.Numbers())
}

// Key returns the key of a step's dropout.
func (t *Learner) Key(s *slot.Slot) keyed.Key { return DropKey(t.Recipe.Seed, t.At.Epoch, s.Step) }

// DropKey returns the key of dropout in a step.
func DropKey(seed uint64, epoch, step int) keyed.Key {
	return keyed.New(seed, keyed.Dropout).With(uint64(epoch)).With(uint64(step))
}
