package train

import (
	"context"
	"time"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A learner is one model of a run, with all that it does not share with the others of
// a sweep. A run without a sweep has one.
//
// Learners take turns: each does a step before the run goes on to the next, all with the
// same slot. Which of them take part in a step follows from where they stand, so that all
// nodes come to the same, and so do runs that were interrupted within a step.
type learner struct {
	*trainer
	index  int    // among those of the run
	recipe Recipe // its own
	model  *nn.Model

	weights   tensor.Matrix
	gradients tensor.Matrix
	optimizer *nn.Optimizer
	pass      *nn.Pass
	view      *view // of inference

	local *local // nil: all nodes' models are the same
	older *older // nil: no step is under way before the updates of those before it
	sums  sums   // nil: a pass adds up all there is
	tour  tour
	piped *piped // nil: steps are of groups of roots

	at      state
	history []Epoch
	best    []float32 // the weights of at.Best, empty if there is none
	host    []float32 // a copy of the weights, for hashes and checkpoints
	end     Epoch     // the one at whose end it is
	// doubted: what its next step begins with is not finite. A step says so on all nodes.
	doubted bool
}

// newLearners makes those of a recipe, without memory.
func (t *trainer) newLearners() error {
	for i, r := range t.recipe.Models() {
		m, err := nn.New(r.Model, t.data.about.Features, t.data.about.Classes)
		if err != nil {
			return err
		}
		l := &learner{trainer: t, index: i, recipe: r, model: m, at: state{Epoch: 1}}
		l.piped = l.newPiped()
		t.learners = append(t.learners, l)
	}
	return nil
}

// allocate makes what lives as long as the run.
func (t *learner) allocate(ctx context.Context) (err error) {
	size := t.model.Size()
	t.weights = t.kept.Alloc(t.device.Type(), 1, size)
	t.gradients = t.kept.Alloc(t.device.Type(), 1, size)
	if t.optimizer, err = nn.NewOptimizer(t.recipe.Optimizer, t.device, t.kept, size); err != nil {
		return err
	}
	if t.older, err = t.newOlder(); err != nil {
		return err
	}
	first, err := t.model.Initial(ctx, t.recipe.Seed)
	if err != nil {
		return err
	}
	t.device.Write(t.weights, first)
	t.host = make([]float32, size)
	return nil
}

// doubt is what is wrong before a step has begun; "" if nothing is known to be.
func (t *learner) doubt() string {
	if t.doubted {
		return "what the step began with"
	}
	return ""
}

// done says whether there is nothing left for it to learn.
func (t *learner) done() bool { return t.at.done(&t.recipe) }

// rest counts the time since training began, went on or was counted last.
func (t *learner) rest() {
	now := time.Now()
	t.at.Under.Seconds += now.Sub(t.begun).Seconds()
	t.begun = now
}

// A place is where a run stands: how many learners have yet to do a step of an epoch.
type place struct{ epoch, step, left int }

// place is that of the learner that is furthest behind, of those that are not done; if
// all are, that of the furthest.
func (t *trainer) place() place {
	var first, last place
	for _, l := range t.learners {
		switch at := (place{l.at.Epoch, l.at.Step, 1}); {
		case l.done():
			if last.before(at) {
				last = at
			}
		case first.left == 0 || at.before(first):
			first = at
		case !first.before(at):
			first.left++
		}
	}
	if first.left == 0 {
		last.left = 0
		return last
	}
	return first
}

// before compares but for who is left.
func (p place) before(o place) bool {
	return p.epoch < o.epoch || p.epoch == o.epoch && p.step < o.step
}

// take sets turn to those that are to do a step of an epoch.
func (t *trainer) take(epoch, step int) {
	t.turn = t.turn[:0]
	for _, l := range t.learners {
		if l.at.Epoch == epoch && l.at.Step == step && !l.done() {
			t.turn = append(t.turn, l)
		}
	}
}

// lead is the first of those whose turn it is: what is done once for all of them is
// told with its epoch.
func (t *trainer) lead() *learner {
	for _, l := range t.turn {
		if !l.done() {
			return l
		}
	}
	return t.learners[0]
}

// done says whether all are.
func (t *trainer) done() bool { return t.place().left == 0 }

// updates counts those of all.
func (t *trainer) updates() (n uint64) {
	for _, l := range t.learners {
		n += l.optimizer.Steps()
	}
	return n
}

// tuning is what the dealer has found out: each has it.
func (t *trainer) tuning() strategy.Tuning { return t.learners[0].at.Tuning }

func (t *trainer) tuned(w strategy.Tuning) {
	for _, l := range t.learners {
		l.at.Tuning = w
	}
}

// sweeps says whether there are several.
func (t *trainer) sweeps() bool { return len(t.learners) > 1 }
