package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// Check says in one sentence what keeps this graph from being trained so, naming
// the setting as users give it.
func (r Recipe) Check(about About) error {
	if len(r.Sweep) > 0 {
		return r.checkSweep(about)
	}
	if err := r.checkNumbers(); err != nil {
		return err
	}
	if err := r.Schedule.check(r.Rate, r.Epochs); err != nil {
		return err
	}
	if err := r.checkWords(); err != nil {
		return err
	}
	if err := r.Sharing.Check(); err != nil {
		return err
	}
	if err := r.checkGraph(about); err != nil {
		return err
	}
	model, err := nn.New(r.Model, about.Features, about.Classes)
	if err != nil {
		return err
	}
	switch r.Sharing.Strategy {
	case strategy.P3:
		err = p3.Check(model)
	case strategy.Grappa:
		err = r.checkIsolation(about)
	}
	if err != nil {
		return err
	}
	if strategy.Piped(r.Sharing.Strategy) {
		if err := pipe.Check(model, &r.Sharing); err != nil {
			return err
		}
	}
	if err := r.checkPiped(); err != nil {
		return err
	}
	return r.checkFanouts(model.Hops())
}

// positive is for what must be above 0, and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func (r Recipe) checkNumbers() error {
	switch {
	case r.Epochs < 1:
		return fmt.Errorf("--epochs is %d: train for at least one", r.Epochs)
	case !positive(r.Rate):
		return fmt.Errorf("--lr is %g: give a number above 0, such as 0.01", r.Rate)
	case r.Batch < 0:
		return fmt.Errorf("--batch is %d: give full, or how many training vertices a step takes", r.Batch)
	case r.Patience < 0:
		return fmt.Errorf("--patience is %d: give how many evaluations in a row may bring nothing better, or 0 to never stop early", r.Patience)
	case r.EvalEvery < 1:
		return fmt.Errorf("--eval-every is %d: give how many epochs lie between two evaluations, at least 1", r.EvalEvery)
	}
	return r.Optimizer.Check()
}

func (s *Schedule) check(base float64, epochs int) error {
	switch {
	case !slices.Contains([]string{Constant, Step, Cosine, Plateau}, s.Kind):
		return fmt.Errorf("--set train.schedule is %q: it is one of constant, step, cosine and plateau", s.Kind)
	case s.Warmup < 0 || s.Warmup >= epochs:
		return fmt.Errorf("--set train.warmup is %d epochs of %d: give 0, or fewer than all", s.Warmup, epochs)
	case s.lowers() && s.Every < 1:
		return fmt.Errorf("--set train.step_every is %d: give at least 1", s.Every)
	case s.lowers() && (!positive(s.Factor) || s.Factor >= 1):
		return fmt.Errorf("--set train.factor is %g: give a number between 0 and 1, such as 0.5", s.Factor)
	case s.Least != 0 && (!positive(s.Least) || s.Least > base):
		return fmt.Errorf("--set train.least_lr is %g: give a number from 0 to --lr, which is %g", s.Least, base)
	}
	return nil
}

// CheckUse says in a sentence what of a recipe somebody has set that has no effect beside
// the rest; asked is the strategy that was asked for. It is for whoever begins a job: a
// recipe with such a setting means what it means without. What other models of a sweep
// could use is nn.Unused.
func (r Recipe) CheckUse(asked string) error {
	s := &r.Schedule
	unused := func(key string, value any, where string) error {
		return &nn.Unused{Key: key, Why: fmt.Sprintf("--set %s=%v is for --set train.schedule=%s, and this job's is %s: leave it out, or choose another schedule", key, value, where, s.Kind)}
	}
	const lowering = Step + " or " + Plateau
	switch {
	case s.Every != 0 && !s.lowers():
		return unused("train.step_every", s.Every, lowering)
	case s.Factor != 0 && !s.lowers():
		return unused("train.factor", s.Factor, lowering)
	case s.Least != 0 && s.Kind != Cosine && s.Kind != Plateau:
		return unused("train.least_lr", s.Least, Cosine+" or "+Plateau)
	}
	return r.Sharing.CheckUse(asked)
}

func (r Recipe) checkWords() error {
	for _, w := range []struct {
		setting, is string
		known       []string
	}{
		{"--optimizer", r.Optimizer.Kind, []string{"adam", "adamw", "sgd"}},
		{"--normalize-features", r.Features, features.Hows},
		{"--set train.loss", r.Loss, []string{Softmax, BCE}},
		{"--set train.metric", r.Metric, []string{Accuracy, MacroF1, ROCAUC}},
	} {
		if !slices.Contains(w.known, w.is) {
			return fmt.Errorf("%s is %q: it is one of %s", w.setting, w.is, strings.Join(w.known, ", "))
		}
	}
	return nil
}

func (r Recipe) checkGraph(about About) error {
	switch {
	case about.Features == 0:
		return errors.New("the dataset has no features for the model to read: import it again from a source that has some")
	case about.Classes == 0:
		return errors.New("the dataset has no labels to learn: import it again from a source that has some")
	case len(about.Splits) == 0:
		return errors.New("the dataset has no split, which says which vertices are for training: import it again with one")
	case r.Split < 0 || r.Split >= len(about.Splits):
		if len(about.Splits) == 1 {
			return fmt.Errorf("--split is %d, and the dataset has one only, which is --split 0", r.Split)
		}
		return fmt.Errorf("--split is %d, and the dataset has the splits 0 to %d", r.Split, len(about.Splits)-1)
	}
	split := about.Splits[r.Split]
	switch {
	case split.Train == 0:
		return fmt.Errorf("split %d of the dataset has no training vertices with a label: choose another --split, or import the dataset with vertices marked for training", r.Split)
	case split.Val == 0 && r.Patience > 0:
		return fmt.Errorf("--patience needs validation vertices to judge epochs by, and split %d has none: leave it out, or choose another --split", r.Split)
	case split.Val == 0 && r.Schedule.Kind == Plateau:
		return fmt.Errorf("--set train.schedule=plateau needs validation vertices to judge epochs by, and split %d has none: choose another schedule or --split", r.Split)
	case r.Metric == ROCAUC && about.Classes < 2:
		return fmt.Errorf("--set train.metric=roc_auc compares classes, and the dataset has %d", about.Classes)
	}
	return nil
}

func (r Recipe) checkFanouts(hops int) error {
	if len(r.Fanouts) == 0 {
		return nil
	}
	if hops == 0 {
		return fmt.Errorf("--fanout is for models that hear neighbours, and a %s hears none: leave it out", r.Model.Model)
	}
	if len(r.Fanouts) != hops {
		return fmt.Errorf("--fanout has %s and the model %s: give one number for each hop, from the roots outwards, or full", count(len(r.Fanouts), "number"), count(hops, "hop"))
	}
	for _, k := range r.Fanouts {
		if k < 0 || k > math.MaxInt32 {
			return fmt.Errorf("--fanout has %d in it: give how many neighbours are drawn, or full", k)
		}
	}
	return nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
